"""What only the official SDK 2.x has: extensions, apps, hints, rounds of questions, its middleware."""

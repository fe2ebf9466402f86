"""The pages, one module for each. A module's list `PAGES` is found by the application."""

"""What watches calls: it drains the recorder, off the path of calls. Nothing here is imported until somebody
observes."""

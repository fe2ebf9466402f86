"""Lists the thirteen descriptors of `descriptors.json` through fastrpc: what W3 measures.

Only the list is real: the tools behind the names belong to `fastrpc serve`, and calling one here fails.
"""

from typing import Annotated

from fastrpc import Server

app = Server("bench-thirteen")


def not_served() -> str:
    raise RuntimeError("this server only lists its tools; `fastrpc serve` runs them")


@app.tool(name="Bash")
def bash(
    command: Annotated[str, "The bash command to execute"],
    timeout: Annotated[int, "Timeout in milliseconds (default: 30000)"] = 30000,
) -> str:
    """Execute a bash command"""
    return not_served()


@app.tool(name="ReadImage")
def read_image(file_path: Annotated[str, "The absolute path to the image file"]) -> str:
    """Read an image file and display it visually"""
    return not_served()


@app.tool(name="ReadDocs")
def read_docs(
    url: Annotated[str, "The URL to fetch"],
    format: Annotated[str, "Output format: text, html, or markdown"] = "markdown",
    wait_ms: Annotated[int, "Wait time for page load in ms"] = 10000,
) -> str:
    """Fetch URL content as markdown via headless browser"""
    return not_served()


@app.tool(name="WebSearch")
def web_search(query: Annotated[str, "The search query"]) -> str:
    """Search the web using 11 engines concurrently"""
    return not_served()


@app.tool(name="TaskManager")
def task_manager(
    action: Annotated[str, "Action: create, add, complete, list, pending, switch"],
    query: Annotated[str, "The search query"],
    task_id: Annotated[int, "Task ID"] = 0,
    step_id: Annotated[int, "Step ID"] = 0,
    text: Annotated[str, "Task name or step text"] = "",
) -> str:
    """Manage persistent tasks with create/add/complete"""
    return not_served()


@app.tool(name="PlanMode")
def plan_mode(
    action: Annotated[str, "Action: enter, exit, status, json, reset"],
    goal: Annotated[str, "Goal/description"] = "",
    plan_file: Annotated[str, "Path to markdown plan file"] = "",
) -> str:
    """Manage plan mode for complex tasks"""
    return not_served()


@app.tool(name="AskUserQuestion")
def ask_user_question(questions_json: Annotated[str, "JSON string with questions and options"]) -> str:
    """Ask interactive multiple-choice questions via TUI"""
    return not_served()


@app.tool(name="InvokeSkill")
def invoke_skill(
    skill_name: Annotated[str, "The skill name to invoke"],
    arguments: Annotated[str, "Arguments to pass to the skill"] = "",
) -> str:
    """Invoke a skill by name for reusable workflows"""
    return not_served()


@app.tool(name="BackgroundBash")
def background_bash(command: Annotated[str, "The bash command to execute"]) -> str:
    """Execute bash command in background, returns immediately"""
    return not_served()


@app.tool(name="ReadBgOutput")
def read_bg_output(task_id: Annotated[int, "The task ID returned by BackgroundBash"]) -> str:
    """Read new output from a background task"""
    return not_served()


@app.tool(name="ListBgTasks")
def list_bg_tasks() -> str:
    """List all background tasks with status and runtime"""
    return not_served()


@app.tool(name="KillBgTask")
def kill_bg_task(task_id: Annotated[int, "The task ID to kill"]) -> str:
    """Kill a running background task by ID"""
    return not_served()


@app.tool(name="SetCallback")
def set_callback(
    action: Annotated[str, "Action: set, list, cancel"],
    message: Annotated[str, "Callback message"] = "",
    delay_seconds: Annotated[int, "Seconds to wait (1-3600)"] = 1,
    repeat_count: Annotated[int, "Times to fire before cancel"] = 20,
    callback_id: Annotated[int, "Callback slot ID"] = 0,
) -> str:
    """Manage scheduled callback messages with repeats"""
    return not_served()


if __name__ == "__main__":
    app.run()

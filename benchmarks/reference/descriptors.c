/* The published contract of the thirteen tools as a table; benchmarks/servers/descriptors.json says the same. */
#include "descriptors.h"

#include <stdbool.h>

struct parameter {
    const char *name, *type, *description;
    bool required;
};

struct descriptor {
    const char *name, *description;
    struct parameter parameters[6]; /* ended by one without a name */
};

static const struct descriptor DESCRIPTORS[] = {
    {"Bash", "Execute a bash command",
     {{"command", "string", "The bash command to execute", true},
      {"timeout", "integer", "Timeout in milliseconds (default: 30000)", false}}},
    {"ReadImage", "Read an image file and display it visually",
     {{"file_path", "string", "The absolute path to the image file", true}}},
    {"ReadDocs", "Fetch URL content as markdown via headless browser",
     {{"url", "string", "The URL to fetch", true},
      {"format", "string", "Output format: text, html, or markdown", false},
      {"wait_ms", "integer", "Wait time for page load in ms", false}}},
    {"WebSearch", "Search the web using 11 engines concurrently",
     {{"query", "string", "The search query", true}}},
    {"TaskManager", "Manage persistent tasks with create/add/complete",
     {{"action", "string", "Action: create, add, complete, list, pending, switch", true},
      {"query", "string", "The search query", true},
      {"task_id", "integer", "Task ID", false},
      {"step_id", "integer", "Step ID", false},
      {"text", "string", "Task name or step text", false}}},
    {"PlanMode", "Manage plan mode for complex tasks",
     {{"action", "string", "Action: enter, exit, status, json, reset", true},
      {"goal", "string", "Goal/description", false},
      {"plan_file", "string", "Path to markdown plan file", false}}},
    {"AskUserQuestion", "Ask interactive multiple-choice questions via TUI",
     {{"questions_json", "string", "JSON string with questions and options", true}}},
    {"InvokeSkill", "Invoke a skill by name for reusable workflows",
     {{"skill_name", "string", "The skill name to invoke", true},
      {"arguments", "string", "Arguments to pass to the skill", false}}},
    {"BackgroundBash", "Execute bash command in background, returns immediately",
     {{"command", "string", "The bash command to execute", true}}},
    {"ReadBgOutput", "Read new output from a background task",
     {{"task_id", "integer", "The task ID returned by BackgroundBash", true}}},
    {"ListBgTasks", "List all background tasks with status and runtime", {{0}}},
    {"KillBgTask", "Kill a running background task by ID",
     {{"task_id", "integer", "The task ID to kill", true}}},
    {"SetCallback", "Manage scheduled callback messages with repeats",
     {{"action", "string", "Action: set, list, cancel", true},
      {"message", "string", "Callback message", false},
      {"delay_seconds", "integer", "Seconds to wait (1-3600)", false},
      {"repeat_count", "integer", "Times to fire before cancel", false},
      {"callback_id", "integer", "Callback slot ID", false}}},
};

static yyjson_mut_val *describe(yyjson_mut_doc *doc, const struct descriptor *descriptor) {
    yyjson_mut_val *tool = yyjson_mut_obj(doc);
    yyjson_mut_obj_add_str(doc, tool, "name", descriptor->name);
    yyjson_mut_obj_add_str(doc, tool, "description", descriptor->description);
    yyjson_mut_val *schema = yyjson_mut_obj_add_obj(doc, tool, "inputSchema");
    yyjson_mut_obj_add_str(doc, schema, "type", "object");
    yyjson_mut_val *properties = yyjson_mut_obj_add_obj(doc, schema, "properties");
    yyjson_mut_val *required = yyjson_mut_arr(doc);
    for (const struct parameter *parameter = descriptor->parameters; parameter->name; parameter++) {
        yyjson_mut_val *property = yyjson_mut_obj_add_obj(doc, properties, parameter->name);
        yyjson_mut_obj_add_str(doc, property, "type", parameter->type);
        yyjson_mut_obj_add_str(doc, property, "description", parameter->description);
        if (parameter->required) yyjson_mut_arr_add_str(doc, required, parameter->name);
    }
    if (yyjson_mut_arr_size(required)) yyjson_mut_obj_add_val(doc, schema, "required", required);
    return tool;
}

yyjson_doc *describe_tools(void) {
    yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    yyjson_mut_val *root = yyjson_mut_obj(doc);
    yyjson_mut_doc_set_root(doc, root);
    yyjson_mut_val *tools = yyjson_mut_obj_add_arr(doc, root, "tools");
    for (size_t i = 0; i < sizeof DESCRIPTORS / sizeof *DESCRIPTORS; i++) {
        yyjson_mut_arr_append(tools, describe(doc, &DESCRIPTORS[i]));
    }
    yyjson_doc *copy = yyjson_mut_doc_imut_copy(doc, NULL);
    yyjson_mut_doc_free(doc);
    return copy;
}

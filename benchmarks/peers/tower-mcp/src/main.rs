//! Peer: tower-mcp with its blocking transport, the fastest of its ways over stdio.

use std::process::Stdio;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};
use tower_mcp::{BoxError, CallToolResult, McpRouter, SyncStdioTransport, ToolBuilder};

#[derive(Deserialize, JsonSchema)]
struct Echo {
    text: String,
}

#[derive(Deserialize, JsonSchema)]
struct Add {
    a: i64,
    b: i64,
}

#[derive(Deserialize, JsonSchema)]
struct Payload {
    object: Map<String, Value>,
}

#[derive(Deserialize, JsonSchema)]
struct Sleep {
    ms: u64,
}

#[derive(Deserialize, JsonSchema)]
struct Bash {
    command: String,
}

fn main() -> Result<(), BoxError> {
    let echo = ToolBuilder::new("echo")
        .description("Return the text.")
        .handler(|input: Echo| async move { Ok(CallToolResult::text(input.text)) })
        .build();
    let add = ToolBuilder::new("add")
        .description("Return the sum of two integers.")
        .handler(|input: Add| async move {
            Ok(CallToolResult::text(
                input.a.wrapping_add(input.b).to_string(),
            ))
        })
        .build();
    let payload = ToolBuilder::new("payload")
        .description("Return the object.")
        .handler(
            |input: Payload| async move { Ok(CallToolResult::json(Value::Object(input.object))) },
        )
        .build();
    let sleep = ToolBuilder::new("sleep")
        .description("Wait for so many milliseconds.")
        .handler(|input: Sleep| async move {
            tokio::time::sleep(Duration::from_millis(input.ms)).await;
            Ok(CallToolResult::text("done"))
        })
        .build();
    let bash = ToolBuilder::new("bash")
        .description("Run a command and return what it printed.")
        .handler(|input: Bash| async move {
            let mut shell = tokio::process::Command::new("bash");
            shell.arg("-c").arg(input.command).stdin(Stdio::null());
            Ok(match shell.output().await {
                Ok(output) => {
                    let printed = [output.stdout, output.stderr].concat();
                    CallToolResult::text(String::from_utf8_lossy(&printed))
                }
                Err(problem) => CallToolResult::error(problem.to_string()),
            })
        })
        .build();

    let router = McpRouter::new()
        .server_info("bench", "1.0.0")
        .tool(echo)
        .tool(add)
        .tool(payload)
        .tool(sleep)
        .tool(bash);
    SyncStdioTransport::new(router).run_blocking()?;
    Ok(())
}

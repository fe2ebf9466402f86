//! Echo in the shapes of W12, `--shape SHAPE`: the source of `benchmarks/servers/shapes.py` as one writes it with
//! this SDK. A plain function where fastrpc's is one, an `async fn` where that is a coroutine; of a name that is
//! not below, the plain echo. An exception has no counterpart here: "value-error" is not served.

use std::collections::BTreeMap;

use rmcp::handler::server::router::prompt::PromptRouter;
use rmcp::handler::server::router::tool::ToolRouter;
use rmcp::handler::server::wrapper::{Json, Parameters};
use rmcp::model::{
    CallToolResult, ContentBlock, ErrorData, ProgressNotificationParam, PromptMessage,
    ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult, ResourceContents, Role,
    ServerCapabilities, ServerConfig,
};
use rmcp::service::RequestContext;
use rmcp::{
    RoleServer, ServerHandler, prompt, prompt_handler, prompt_router, schemars, tool, tool_handler,
    tool_router,
};
use serde::{Deserialize, Serialize};

#[derive(Deserialize, schemars::JsonSchema)]
struct Given {
    text: String,
}

/// What a tool returns.
#[derive(Serialize, schemars::JsonSchema)]
struct Record {
    text: String,
}

type Context = RequestContext<RoleServer>;

#[derive(Clone)]
pub struct Shaped {
    tool_router: ToolRouter<Self>,
    prompt_router: PromptRouter<Self>,
}

impl Shaped {
    pub fn new(shape: &str) -> Self {
        let tool_router = match shape {
            "context" => Self::context(),
            "progress" => Self::progress(),
            "coroutine" => Self::coroutine(),
            "waiting" => Self::waiting(),
            "dict" => Self::dict(),
            "model" => Self::model(),
            "texts" => Self::texts(),
            "tool-error" => Self::tool_error(),
            _ => Self::plain(),
        };
        Self {
            tool_router,
            prompt_router: Self::prompts(),
        }
    }
}

#[tool_router(router = plain)]
impl Shaped {
    #[tool(name = "echo", description = "Return the text.")]
    fn echo(&self, Parameters(Given { text }): Parameters<Given>) -> String {
        text
    }
}

#[tool_router(router = context)]
impl Shaped {
    #[tool(name = "echo", description = "Return the text.")]
    fn with_context(
        &self,
        Parameters(Given { text }): Parameters<Given>,
        _context: Context,
    ) -> String {
        text
    }
}

#[tool_router(router = progress)]
impl Shaped {
    #[tool(name = "echo", description = "Return the text.")]
    async fn reporting(
        &self,
        Parameters(Given { text }): Parameters<Given>,
        context: Context,
    ) -> String {
        if let Some(token) = context.meta.get_progress_token() {
            let progress = ProgressNotificationParam::new(token, 1.0);
            let _ = context.peer.notify_progress(progress).await;
        }
        text
    }
}

#[tool_router(router = coroutine)]
impl Shaped {
    #[tool(name = "echo", description = "Return the text.")]
    async fn echo_async(&self, Parameters(Given { text }): Parameters<Given>) -> String {
        text
    }
}

#[tool_router(router = waiting)]
impl Shaped {
    #[tool(name = "echo", description = "Return the text.")]
    async fn echo_waiting(&self, Parameters(Given { text }): Parameters<Given>) -> String {
        tokio::task::yield_now().await;
        text
    }
}

#[tool_router(router = dict)]
impl Shaped {
    #[tool(name = "echo", description = "Return the text as a record.")]
    fn returning_dict(
        &self,
        Parameters(Given { text }): Parameters<Given>,
    ) -> Json<BTreeMap<String, String>> {
        Json(BTreeMap::from([("text".into(), text)]))
    }
}

#[tool_router(router = model)]
impl Shaped {
    #[tool(name = "echo", description = "Return the text as a record.")]
    fn returning_model(&self, Parameters(Given { text }): Parameters<Given>) -> Json<Record> {
        Json(Record { text })
    }
}

#[tool_router(router = texts)]
impl Shaped {
    #[tool(name = "echo", description = "Return the text twice.")]
    fn returning_texts(&self, Parameters(Given { text }): Parameters<Given>) -> CallToolResult {
        CallToolResult::success(vec![
            ContentBlock::text(text.clone()),
            ContentBlock::text(text),
        ])
    }
}

#[tool_router(router = tool_error)]
impl Shaped {
    #[tool(name = "echo", description = "Refuse the text.")]
    fn failing(&self, Parameters(Given { text }): Parameters<Given>) -> Result<String, String> {
        Err(text)
    }
}

#[prompt_router(router = "prompts")]
impl Shaped {
    #[prompt(name = "echo", description = "Ask for the text.")]
    async fn asking(&self, Parameters(Given { text }): Parameters<Given>) -> Vec<PromptMessage> {
        vec![PromptMessage::new_text(Role::User, text)]
    }
}

#[tool_handler(router = self.tool_router)]
#[prompt_handler(router = self.prompt_router)]
impl ServerHandler for Shaped {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_resources()
            .enable_prompts()
            .build();
        ServerConfig::new(capabilities)
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _context: Context,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let uri = request.uri;
        let Some(number) = uri.strip_prefix("bench://notes/") else {
            return Err(ErrorData::resource_not_found("no such note", None));
        };
        let text = format!("This is note {number}");
        Ok(ReadResourceResult::new(vec![ResourceContents::text(text, uri)]).into())
    }
}

//! The reference of P13: a server of rmcp that reads files of its directory, without a policy, a record or a sandbox.
//! This program is that server where its one argument is [`WORD`].

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ServerCapabilities,
    ServerConfig,
};
use rmcp::service::RequestContext;
use rmcp::transport::stdio_pipes;
use rmcp::{ErrorData, RoleServer, ServerHandler, ServiceExt as _};
use serde_json::Value;

use crate::Answer;

/// The argument.
pub(crate) const WORD: &str = "rmcp-server";

/// Serves standard input and output to their end, with threads as rmcp's examples have them.
pub(crate) fn serve() -> Answer<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    runtime.map_err(|error| error.to_string())?.block_on(async {
        let service = Files.serve(stdio_pipes()).await.map_err(|error| error.to_string())?;
        service.waiting().await.map(|_| ()).map_err(|error| error.to_string())
    })
}

struct Files;

impl ServerHandler for Files {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let path = request.arguments.as_ref().and_then(|arguments| arguments.get("path"));
        let path = path.and_then(Value::as_str).unwrap_or_default();
        let text = std::fs::read_to_string(path)
            .map_err(|error| ErrorData::invalid_params(error.to_string(), None))?;
        Ok(CallToolResult::success(vec![ContentBlock::text(text)]).into())
    }
}

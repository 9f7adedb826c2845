//! Tools as a client is told of them.

use capsule_core::capability::Capability;
use capsule_core::tool::ToolSignature;
use capsule_runtime::{CATALOGUE, ModelTool};
use serde_json::{Map, Value, json};

/// The tools of a policy as a client is told of them.
pub(crate) fn tool_list(tools: &[ModelTool]) -> Value {
    let tools: Vec<Value> = tools.iter().map(tool_json).collect();
    json!({ "tools": tools })
}

fn tool_json(tool: &ModelTool) -> Value {
    let mut shown = json!({
        "name": tool.name,
        "description": tool.about,
        "inputSchema": tool.parameters,
    });
    if let (Some(map), Some(signature)) = (shown.as_object_mut(), CATALOGUE.find(tool.name)) {
        map.insert("outputSchema".into(), output_schema(signature));
        map.insert("annotations".into(), annotations(signature));
    }
    shown
}

/// Hints of what a tool can do, from the capabilities that each of its calls needs. A program may need more than its
/// tool says, so it is taken for one that changes things and sends them away.
fn annotations(tool: &ToolSignature) -> Value {
    let has = |capability| tool.capabilities.contains(&capability);
    // The tools that look at a repository run a program that changes nothing.
    let runs = has(Capability::ProcExec) && !has(Capability::FsRead);
    let deletes = has(Capability::FsDelete);
    let writes = runs || deletes || has(Capability::FsWrite);
    let sends = runs || has(Capability::NetEgress);
    json!({
        "title": tool.id,
        "readOnlyHint": !writes && !sends,
        "destructiveHint": writes,
        "idempotentHint": !writes,
        "openWorldHint": sends,
    })
}

/// The schema of a result, whatever became of the call.
fn output_schema(tool: &ToolSignature) -> Value {
    let field = |field: &capsule_core::tool::ResultField| {
        (field.name.to_owned(), json!({ "description": field.about }))
    };
    let fields: Map<String, Value> = tool.results.iter().map(field).collect();
    json!({
        "type": "object",
        "properties": {
            "status": { "enum": ["ok", "denied", "tool_error", "runtime_error"] },
            "code": { "type": "string", "description": "why it is not ok" },
            "reason": { "type": "string" },
            "suggestion": { "type": ["string", "null"], "description": "what can be done instead" },
            "result": { "type": "object", "properties": fields },
        },
        "required": ["status"],
    })
}

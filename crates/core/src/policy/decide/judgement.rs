//! The outcome of a decision.

use crate::capability::Capabilities;
use crate::decision::Decision;
use crate::policy::decide::trace::DecisionTrace;
use crate::policy::restrictions::Restrictions;

/// A decision, and the bounds that come with it where it allows.
#[derive(Clone, Debug)]
pub struct Judgement {
    /// The decision.
    pub decision: Decision,
    /// The bounds.
    pub restrictions: Restrictions,
    /// What was asked on the way.
    pub trace: DecisionTrace,
    /// What rules say that the call needs besides what it means; the decision counts it in.
    pub named_capabilities: Capabilities,
}

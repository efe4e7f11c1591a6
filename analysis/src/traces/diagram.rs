//! One trace as a sequence diagram: components side by side, calls and returns between them.

use std::fmt::Write as _;

use super::graph::{ENTRY, escaped};
use super::operations::Operations;
use super::tree::Trace;

/// The most calls in a diagram. It shows how many calls are left out.
const MAX_CALLS: usize = 500;

/// The space for a component and for a message, in pixels.
const COLUMN: usize = 190;
const ROW: usize = 26;

/// The calls of one trace in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SequenceDiagram {
    title: String,
    /// The components, in the order of their first call; the entry first.
    lifelines: Vec<String>,
    messages: Vec<Message>,
    left_out: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Message {
    from: usize,
    to: usize,
    /// The operation of a call; `None` for a return.
    call: Option<String>,
}

impl SequenceDiagram {
    /// Creates the diagram of a valid trace.
    pub fn of(trace: &Trace, operations: &Operations) -> Self {
        let mut lifelines = vec![ENTRY.to_owned()];
        let mut messages = Vec::new();
        let mut open: Vec<usize> = Vec::new();
        let reply = |open: &mut Vec<usize>, messages: &mut Vec<Message>| {
            let from = open.pop().unwrap_or(0);
            messages.push(Message {
                from,
                to: open.last().copied().unwrap_or(0),
                call: None,
            });
        };
        for call in trace.calls.iter().take(MAX_CALLS) {
            while open.len() > usize::try_from(call.ess).unwrap_or(0) {
                reply(&mut open, &mut messages);
            }
            let operation = operations.get(call.operation);
            let component = operation.map_or_else(String::new, |operation| {
                format!("{}::{}", operation.host, operation.component)
            });
            let known = lifelines.iter().position(|it| *it == component);
            let to = known.unwrap_or_else(|| {
                lifelines.push(component);
                lifelines.len() - 1
            });
            messages.push(Message {
                from: open.last().copied().unwrap_or(0),
                to,
                call: operation.map(|operation| operation.name.as_ref().to_owned()),
            });
            open.push(to);
        }
        while !open.is_empty() {
            reply(&mut open, &mut messages);
        }
        Self {
            title: format!("trace {}", trace.id),
            lifelines,
            messages,
            left_out: trace.calls.len().saturating_sub(MAX_CALLS),
        }
    }

    /// The diagram for PlantUML.
    pub fn plantuml(&self) -> String {
        let mut text = format!("@startuml\ntitle {}\n", self.title);
        for (number, name) in self.lifelines.iter().enumerate() {
            let name = name.replace(['"', '\n', '\r'], "'");
            writeln!(text, "participant \"{name}\" as p{number}").ok();
        }
        for message in &self.messages {
            let (from, to) = (message.from, message.to);
            match &message.call {
                Some(call) => {
                    let call = call.replace(['\n', '\r'], " ");
                    writeln!(text, "p{from} -> p{to} : {call}\nactivate p{to}").ok()
                }
                None => writeln!(text, "p{from} --> p{to}\ndeactivate p{from}").ok(),
            };
        }
        if self.left_out > 0 {
            writeln!(text, "note over p0 : {} more calls", self.left_out).ok();
        }
        text.push_str("@enduml\n");
        text
    }

    /// The diagram as a picture.
    pub fn svg(&self) -> String {
        let width = self.lifelines.len().saturating_mul(COLUMN);
        let rows = self
            .messages
            .len()
            .saturating_add(usize::from(self.left_out > 0));
        let height = rows.saturating_mul(ROW).saturating_add(80);
        let middle = |lifeline: usize| lifeline.saturating_mul(COLUMN).saturating_add(COLUMN / 2);
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
             width=\"{width}\" height=\"{height}\" font-family=\"sans-serif\" font-size=\"11\">\n\
             <title>{}</title><defs><marker id=\"arrow\" viewBox=\"0 0 8 8\" refX=\"8\" refY=\"4\" \
             markerWidth=\"8\" markerHeight=\"8\" orient=\"auto\"><path d=\"M0 0L8 4L0 8z\" \
             fill=\"#345\"/></marker></defs>\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
            escaped(&self.title)
        );
        for (number, name) in self.lifelines.iter().enumerate() {
            let x = middle(number);
            let parts = name.rsplit_once(['.', ':']);
            let short = escaped(parts.map_or(name, |(_, short)| short));
            writeln!(
                svg,
                "<g><title>{}</title><text x=\"{x}\" y=\"24\" text-anchor=\"middle\" \
                 font-weight=\"bold\">{short}</text><line x1=\"{x}\" y1=\"34\" x2=\"{x}\" \
                 y2=\"{height}\" stroke=\"#abc\" stroke-dasharray=\"4 4\"/></g>",
                escaped(name)
            )
            .ok();
        }
        let mut y = 60_usize;
        for message in &self.messages {
            let (from, to) = (middle(message.from), middle(message.to));
            let dash = match message.call {
                Some(_) => "",
                None => " stroke-dasharray=\"3 3\"",
            };
            let (path, label) = match from == to {
                true => {
                    let (out, below) = (from.saturating_add(36), y.saturating_add(10));
                    (
                        format!("M{from} {y}H{out}V{below}H{from}"),
                        from.saturating_add(40),
                    )
                }
                false => (format!("M{from} {y}H{to}"), from.saturating_add(to) / 2),
            };
            let anchor = if from == to { "start" } else { "middle" };
            let name = escaped(message.call.as_deref().unwrap_or(""));
            writeln!(
                svg,
                "<path d=\"{path}\" fill=\"none\" stroke=\"#345\"{dash} marker-end=\"url(#arrow)\"/>\
                 <text x=\"{label}\" y=\"{}\" text-anchor=\"{anchor}\">{name}</text>",
                y.saturating_sub(5)
            )
            .ok();
            y = y.saturating_add(ROW);
        }
        if self.left_out > 0 {
            writeln!(
                svg,
                "<text x=\"10\" y=\"{y}\">{} more calls</text>",
                self.left_out
            )
            .ok();
        }
        svg.push_str("</svg>\n");
        svg
    }
}

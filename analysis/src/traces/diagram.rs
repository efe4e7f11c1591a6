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
        // The lifelines of the open calls; the entry's comes first.
        let mut open = vec![0];
        let reply_until = |depth: usize, open: &mut Vec<usize>, messages: &mut Vec<Message>| {
            while open.len() > depth + 1 {
                let (from, to) = (open[open.len() - 1], open[open.len() - 2]);
                messages.push(Message {
                    from,
                    to,
                    call: None,
                });
                open.pop();
            }
        };
        for call in trace.calls.iter().take(MAX_CALLS) {
            reply_until(call.depth(), &mut open, &mut messages);
            let operation = operations.operation(call.operation);
            let component = format!("{}::{}", operation.host, operation.component);
            let known = lifelines.iter().position(|it| *it == component);
            let to = known.unwrap_or_else(|| {
                lifelines.push(component);
                lifelines.len() - 1
            });
            messages.push(Message {
                from: open[open.len() - 1],
                to,
                call: Some(match call.asynchronous {
                    true => format!("async {}", operation.name()),
                    false => operation.name(),
                }),
            });
            open.push(to);
        }
        reply_until(0, &mut open, &mut messages);
        Self {
            title: format!("trace {}", trace.id),
            lifelines,
            messages,
            left_out: trace.calls.iter().skip(MAX_CALLS).len(),
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
        let width = self.lifelines.len() * COLUMN;
        let rows = self.messages.len() + usize::from(self.left_out > 0);
        let height = rows * ROW + 80;
        let middle = |lifeline: usize| lifeline * COLUMN + COLUMN / 2;
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
                    let (out, below) = (from + 36, y + 10);
                    (format!("M{from} {y}H{out}V{below}H{from}"), from + 40)
                }
                false => (format!("M{from} {y}H{to}"), (from + to) / 2),
            };
            let anchor = if from == to { "start" } else { "middle" };
            let name = escaped(message.call.as_deref().unwrap_or(""));
            writeln!(
                svg,
                "<path d=\"{path}\" fill=\"none\" stroke=\"#345\"{dash} marker-end=\"url(#arrow)\"/>\
                 <text x=\"{label}\" y=\"{}\" text-anchor=\"{anchor}\">{name}</text>",
                y - 5
            )
            .ok();
            y += ROW;
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

//! Dependencies as a graph: of components, of operations, of hosts, or as a call tree.

use std::fmt::Write as _;

use foldhash::HashMap;

use super::call_tree::CallTree;
use super::counts::add_count;
use super::operations::{Operation, OperationId, Operations};
use super::tree::Trace;

/// The kind of a graph's nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Level {
    /// Components on all hosts together.
    Components,
    /// Components on hosts.
    HostComponents,
    /// Operations on hosts.
    HostOperations,
    /// Hosts.
    Hosts,
    /// Operations on all hosts together.
    Operations,
}

/// A directed graph. Node 0 is the entry, from which traces begin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Graph {
    /// The nodes.
    pub nodes: Vec<GraphNode>,
    /// The calls between them, in order of the nodes.
    pub edges: Vec<GraphEdge>,
}

/// A node.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GraphNode {
    /// The host, if hosts are distinguished, and the component of an operation; outermost first.
    pub groups: Vec<String>,
    /// Its name.
    pub label: String,
}

/// Calls from one node to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct GraphEdge {
    /// The position of the calling node.
    pub from: usize,
    /// The position of the called node.
    pub to: usize,
    /// The number of calls.
    pub calls: u64,
}

/// The name of the entry, as in Kieker.
pub(super) const ENTRY: &str = "'Entry'";

impl Level {
    /// All levels, with names for files.
    pub const ALL: [(Self, &str); 5] = [
        (Self::Components, "components"),
        (Self::Operations, "operations"),
        (Self::Hosts, "hosts"),
        (Self::HostComponents, "host-components"),
        (Self::HostOperations, "host-operations"),
    ];

    fn node(self, operation: Operation<'_>) -> GraphNode {
        let host = operation.host.to_owned();
        let component = operation.component.to_owned();
        let (groups, label) = match self {
            Self::Components => (vec![], component),
            Self::HostComponents => (vec![host], component),
            Self::Hosts => (vec![], host),
            Self::HostOperations => (vec![host, component], operation.name()),
            Self::Operations => (vec![component], operation.name()),
        };
        GraphNode { groups, label }
    }

    /// Returns the key of a node: host, component and signature, as far as the level distinguishes
    /// them. Operations with the same short name are different nodes.
    fn key(self, operation: Operation<'_>) -> [&str; 3] {
        let Operation {
            host,
            component,
            signature,
        } = operation;
        match self {
            Self::Components => ["", component, ""],
            Self::HostComponents => [host, component, ""],
            Self::Hosts => [host, "", ""],
            Self::HostOperations => [host, component, signature],
            Self::Operations => ["", component, signature],
        }
    }
}

impl GraphNode {
    fn entry() -> Self {
        Self {
            groups: Vec::new(),
            label: ENTRY.to_owned(),
        }
    }

    /// Returns its name, preceded by the names of its groups.
    pub fn full_name(&self) -> String {
        let mut name = self.groups.join("::");
        if !name.is_empty() {
            name.push('.');
        }
        name + &self.label
    }
}

impl Graph {
    /// Returns the dependencies in a call tree. Calls within a node are left out, as in Kieker,
    /// unless `self_loops` is set.
    pub fn of(tree: &CallTree, operations: &Operations, level: Level, self_loops: bool) -> Self {
        let mut nodes = vec![GraphNode::entry()];
        let mut known = HashMap::default();
        let mut of_operation: HashMap<OperationId, usize> = HashMap::default();
        let mut edges: HashMap<(usize, usize), u64> = HashMap::default();
        let mut position = |id: OperationId| {
            if let Some(known) = of_operation.get(&id) {
                return *known;
            }
            let operation = operations.operation(id);
            let position = *known.entry(level.key(operation)).or_insert_with(|| {
                nodes.push(level.node(operation));
                nodes.len() - 1
            });
            of_operation.insert(id, position);
            position
        };
        for (from, to, calls) in tree.calls() {
            let (from, to) = (from.map_or(0, &mut position), position(to));
            if from != to || self_loops {
                add_count(edges.entry((from, to)).or_default(), calls);
            }
        }
        let edges = edges.into_iter();
        let edges = edges.map(|((from, to), calls)| GraphEdge { from, to, calls });
        let mut edges: Vec<_> = edges.collect();
        edges.sort_unstable_by_key(|edge| (edge.from, edge.to));
        Self { nodes, edges }
    }

    /// Returns a call tree with a separate node for each list of callers.
    pub fn of_tree(tree: &CallTree, operations: &Operations, with_hosts: bool) -> Self {
        let mut nodes = vec![GraphNode::entry()];
        let mut edges = Vec::new();
        for (to, node) in tree.nodes().iter().enumerate().skip(1) {
            let operation = operations.operation(node.called());
            let host = match with_hosts {
                true => format!("{}::", operation.host),
                false => String::new(),
            };
            nodes.push(GraphNode {
                groups: Vec::new(),
                label: format!("{host}{}.{}", operation.component, operation.name()),
            });
            edges.push(GraphEdge {
                from: node.parent,
                to,
                calls: node.calls,
            });
        }
        Self { nodes, edges }
    }

    /// Returns the call tree of one valid trace.
    pub fn of_trace(trace: &Trace, operations: &Operations) -> Self {
        let mut tree = CallTree::default();
        let callers = trace.callers();
        let calls = trace.calls.iter().zip(callers);
        calls.for_each(|(call, (caller, own))| tree.push(call, caller, own));
        Self::of_tree(&tree, operations, true)
    }

    /// The graph for Graphviz.
    pub fn dot(&self) -> String {
        let mut dot = String::from("digraph G {\n rankdir=LR;\n node [shape=box];\n");
        for (number, node) in self.nodes.iter().enumerate() {
            // Graphviz merges clusters with the same name.
            let mut name = String::from("cluster");
            for group in &node.groups {
                name = format!("{name}/{group}");
                let (name, group) = (quoted(&name), quoted(group));
                writeln!(dot, " subgraph {name} {{ label={group};").ok();
            }
            let shape = if number == 0 { ",shape=none" } else { "" };
            let label = quoted(&node.label);
            let ends = "}".repeat(node.groups.len());
            writeln!(dot, " n{number} [label={label}{shape}]; {ends}").ok();
        }
        for edge in &self.edges {
            writeln!(
                dot,
                " n{} -> n{} [label={}];",
                edge.from, edge.to, edge.calls
            )
            .ok();
        }
        dot.push_str("}\n");
        dot
    }

    /// The graph for programs that read GraphML, such as yEd, Gephi and `networkx`.
    pub fn graphml(&self) -> String {
        let mut xml = String::from(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
             <graphml xmlns=\"http://graphml.graphdrawing.org/xmlns\">\n\
             <key id=\"label\" for=\"node\" attr.name=\"label\" attr.type=\"string\"/>\n\
             <key id=\"group\" for=\"node\" attr.name=\"group\" attr.type=\"string\"/>\n\
             <key id=\"calls\" for=\"edge\" attr.name=\"calls\" attr.type=\"long\"/>\n\
             <graph id=\"G\" edgedefault=\"directed\">\n",
        );
        for (number, node) in self.nodes.iter().enumerate() {
            let (label, group) = (escaped(&node.label), escaped(&node.groups.join("::")));
            writeln!(
                xml,
                "<node id=\"n{number}\"><data key=\"label\">{label}</data><data key=\"group\">{group}</data></node>"
            )
            .ok();
        }
        for edge in &self.edges {
            let GraphEdge { from, to, calls } = edge;
            writeln!(
                xml,
                "<edge source=\"n{from}\" target=\"n{to}\"><data key=\"calls\">{calls}</data></edge>"
            )
            .ok();
        }
        xml.push_str("</graph>\n</graphml>\n");
        xml
    }
}

/// Quotes a text for a DOT file.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// Escapes a text for an XML file. Characters that XML cannot contain become question marks.
pub(super) fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\t' | '\n' | '\r' => safe.push(' '),
            letter if letter.is_control() || matches!(letter, '\u{fffe}' | '\u{ffff}') => {
                safe.push('?');
            }
            letter => safe.push(letter),
        }
    }
    safe
}

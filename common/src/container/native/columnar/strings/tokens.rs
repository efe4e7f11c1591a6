//! Words that a chunk names by number instead of spelling them; FORMAT.md, "Well-known words",
//! holds the same table.

/// The words by number. They are part of the format: words are only ever appended, and there is
/// room for 256.
#[rustfmt::skip]
pub(super) const TOKENS: [&str; 242] = [
    // Signatures of Java.
    "public ", "private ", "protected ", "static ", "final ", "abstract ", "synchronized ",
    "void ", "boolean ", "int ", "long ", "double ", "java.", "javax.", "jakarta.", "lang.",
    "util.", "io.", "net.", "sql.", "time.", "Object ", "String ", "Integer ", "Long ", "Boolean ",
    "List ", "Map ", "Set ", "Optional ", "Collection ", "init>", "int)", "int, ", "long)",
    "long, ", "boolean)", "boolean, ", "double)", "double, ", "java.lang.Object)",
    "java.lang.Object, ", "java.lang.String)", "java.lang.String, ", "java.lang.Long)",
    "java.lang.Long, ", "java.lang.Integer)", "java.lang.Integer, ", "java.util.List)",
    "java.util.List, ", "java.util.Map)", "java.util.Map, ",
    // Packages and modules.
    "com.", "org.", "de.", "dev.", "example.", "apache.", "springframework.", "kieker.", "app.",
    "api.", "web.", "rest.", "core.", "common.", "internal.", "impl.", "config.", "client.",
    "server.", "service.", "services.", "repository.", "controller.", "controllers.", "gateway.",
    "model.", "domain.", "data.", "dao.", "dto.", "entity.", "handler.", "event.", "security.",
    "auth.", "account.", "user.", "customer.", "session.", "shop.", "store.", "catalog.",
    "product.", "inventory.", "cart.", "order.", "orders.", "checkout.", "payment.", "billing.",
    "shipping.", "search.", "notification.", "report.",
    "std::", "core::", "alloc::", "tokio::", "main::", "lib::", "app::", "api::", "web::",
    "client::", "server::", "service::", "services::", "repository::", "handler::", "handlers::",
    "routes::", "model::", "models::", "domain::", "db::", "auth::", "account::", "user::",
    "session::", "shop::", "catalog::", "product::", "inventory::", "cart::", "order::",
    "checkout::", "payment::", "shipping::", "search::",
    // Parts of names.
    "Service", "Service.", "Services", "Controller", "Controller.", "Repository", "Repository.",
    "Gateway", "Gateway.", "Handler", "Handler.", "Factory", "Factory.", "Client", "Client.",
    "Impl", "Impl.", "Order", "Order(", "Order.", "Product", "Product(", "Product.", "Customer",
    "Customer(", "Customer.", "User", "User(", "User.", "Account", "Account(", "Account.", "Item",
    "Item(", "Cart", "Cart(", "Invoice", "Invoice(", "Payment", "Payment(", "Stock", "Stock(",
    "Session", "Session(", "Address", "Address(", "Discount", "Discount(", "Price", "Price(",
    "Name", "Name(", "Id", "Id(", "All", "All(", "By", "get", "set", "is", "has", "find", "load",
    "save", "add", "remove", "create", "update", "delete", "validate", "calculate", "process",
    "handle", "execute", "run(", "close(", "read", "write", "send", "publish", "reserve", "merge",
    "get_", "set_", "find_", "load_", "add_", "remove_", "create_", "update_", "delete_", "by_",
    "id",
    // What Kieker says where it knows nothing.
    "<", "no-", "session-", "id>", "trace-", "default-", "host>", "localhost",
];

#[cfg(test)]
mod tests;

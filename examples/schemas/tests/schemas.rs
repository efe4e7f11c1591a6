//! Records of a type of the record language, sent and received.

use std::time::Duration;

use baler::{Controller, Record, consume};
use baler_schemas::com_shop::{Order, State};

#[test]
fn records_of_a_file_are_sent_and_received() {
    let folder = tempfile::tempdir().unwrap();
    let uri = format!("file://{}", folder.path().display());
    let order = Order {
        order_id: 7,
        items: vec!["tea".into(); Order::MAX_ITEMS as usize],
        ..Order::default()
    };
    assert_eq!(
        (order.currency, order.state, order.cents),
        ('€', State::OPEN, 0)
    );
    let controller = Controller::to(&uri).unwrap();
    controller.emit(&order);
    let report = controller.shutdown(Duration::from_secs(10));
    assert_eq!(report.dropped().total(), 0, "{report}");

    let mut consumer = consume::<Order>(&uri).unwrap();
    let batch = consumer.next().unwrap().unwrap();
    let received: Vec<Order> = batch.iter().cloned().collect();
    batch.ack().unwrap();
    assert_eq!(received, [order]);
}

#[test]
fn a_record_has_the_names_of_the_file() {
    let schema = Order::schema();
    let fields: Vec<_> = schema.fields().iter().map(|it| it.name()).collect();
    assert_eq!(schema.name(), "com.shop.Order");
    assert_eq!(fields, ["cents", "orderId", "items", "currency", "state"]);
}

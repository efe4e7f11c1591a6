use super::*;

#[test]
fn ports_are_free_and_nobody_gets_them_by_chance() {
    let ports: Vec<u16> = (0..50).map(|_| free_port().unwrap()).collect();
    for port in &ports {
        assert!((FIRST_PORT..first_given_away()).contains(port), "{port}");
        TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).unwrap();
    }
    let mut different = ports;
    different.sort_unstable();
    different.dedup();
    assert!(different.len() > 40, "{different:?}");
}

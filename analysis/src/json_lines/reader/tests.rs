use super::*;

/// Has a line and panics after it.
struct Panics(&'static [u8]);

impl Read for Panics {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        assert!(!self.0.is_empty(), "nothing is left");
        std::mem::take(&mut self.0).read(buffer)
    }
}

#[test]
fn panic_while_a_pipe_is_read_is_no_end_of_the_input() {
    let mut pipe = read_in_thread(Panics(b"{}\n")).unwrap();
    assert_eq!(pipe.parts.recv().unwrap().unwrap(), b"{}\n");
    pipe.parts.recv().unwrap_err();
    let error = pipe.end().unwrap_err().to_string();
    assert_eq!(error, "reading panicked: nothing is left");
    let mut pipe = read_in_thread(io::empty()).unwrap();
    pipe.parts.recv().unwrap_err();
    pipe.end().unwrap();
}

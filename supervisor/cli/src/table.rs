//! Tables for people: columns as wide as they need, the last one free.

use unicode_width::UnicodeWidthStr as _;

use crate::escape;

/// Renders rows under a head; cells are escaped here.
pub(crate) fn render(head: &[&str], rows: &[Vec<String>]) -> String {
    let rows: Vec<Vec<String>> = rows.iter().map(|row| row.iter().map(|cell| escape::line(cell)).collect()).collect();
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.width());
        cells.chain(head.get(column).map(|h| h.width())).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    let head: Vec<String> = head.iter().map(|h| (*h).to_owned()).collect();
    let mut out = String::new();
    for row in std::iter::once(&head).chain(&rows) {
        let mut text = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            text.push_str(cell);
            text.push_str(&" ".repeat(width.saturating_sub(cell.width()) + 2));
        }
        out.push_str(text.trim_end());
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_and_cells_are_escaped() {
        let rows = [
            vec!["a".to_owned(), "漢字".to_owned(), "x".to_owned()],
            vec!["bbb".to_owned(), "\x1b".to_owned(), "y".to_owned()],
        ];
        assert_eq!(render(&["ID", "NAME", "LAST"], &rows), "ID   NAME    LAST\na    漢字    x\nbbb  \\u{1b}  y\n");
    }
}

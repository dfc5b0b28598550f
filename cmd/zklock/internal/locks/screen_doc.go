package locks

// A Screen draws full screens on a terminal and reads its keys. It uses only VT100
// sequences and the alternate screen, so it works over ssh, in tmux, and on a console.
// It sends only the [Line]s that changed.
//
// It uses no library. A prototype of the same drawing on Linux compared this code with
// tcell v2.13.10 and bubbletea v2.1.1:
//
//   - A lock's name comes from other clients, so it can hold escape sequences. tcell
//     sends them to the terminal, bubbletea drops them, and both send characters that
//     reverse text. The escaping of [Line] would stay.
//   - With a TERM that the machine does not know, tcell refuses to start.
//   - tcell adds 0.5 MB and 5 modules to the prototype, bubbletea 1.4 MB and 15 modules.
//   - The first drawing came after 58 ms with tcell, after 80 ms with bubbletea, and
//     after 35 ms here (medians of 5 starts).
//   - Lines, styles, key names, and suspension would stay, so a library would remove
//     fewer than 200 lines by our estimate.

// A stream of server-sent events. The browser's own can't send the token's header.

import { headers } from "./token.js";

export class Stream {
  // on is called with an event's name and its data; opened when the stream is there;
  // ended when it is over, with the server's status if that answered with something else.
  constructor(address, { on, opened, ended }) {
    this.over = new AbortController();
    this.read(address, on, opened).then((status) => this.end(ended, status), () => this.end(ended));
  }

  close() { this.over.abort(); }

  end(ended, status) {
    if (!this.over.signal.aborted) ended(status);
  }

  async read(address, on, opened) {
    const response = await fetch(address, { headers: headers({ Accept: "text/event-stream" }), cache: "no-store", signal: this.over.signal });
    if (!response.ok) return response.status;
    opened();
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "", name = "", data = "";
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return undefined;
      const lines = (rest + value).split("\n");
      rest = lines.pop();
      for (const line of lines) {
        if (line.startsWith("event: ")) name = line.slice(7);
        else if (line.startsWith("data: ")) data += line.slice(6);
        else if (line === "") {
          if (name && !this.over.signal.aborted) on(name, JSON.parse(data));
          name = data = "";
        }
      }
    }
  }
}

// The page's addresses. All are one level deep and relative, so that they work
// wherever the page is mounted.

import { headers, login } from "./token.js";

const query = (v) => encodeURIComponent(v).replaceAll("%2F", "/");

export const lockAddress = (path) => `lock?path=${query(path)}`;
export const sessionAddress = (id) => `session?id=${query(id)}`;

// here names the page that is open, and its parameters.
export function here() {
  const name = location.pathname.slice(location.pathname.lastIndexOf("/") + 1);
  return { name, query: new URLSearchParams(location.search) };
}

// ask gets an address's JSON. What the server says is wrong is the error's message.
// An answer of 404 that says as much in the usual shape is an answer.
// One of 401 has the user asked for the token, and then the server once more.
export async function ask(address, options = {}) {
  const response = await fetch(address, { cache: "no-store", ...options, headers: headers(options.headers) });
  if (response.status === 401) {
    await login();
    return ask(address, options);
  }
  const answer = await response.json().catch(() => ({}));
  if (answer.error || (!response.ok && response.status !== 404)) {
    throw new Error(answer.error ?? `the server answered ${response.status}`);
  }
  return answer;
}

// json is an address that answers with JSON whatever else is cached of it.
export function json(name, parameters = {}) {
  return `./${name}?${new URLSearchParams({ ...parameters, format: "json" })}`;
}

// The page of an unknown address: only its colors.

import { start } from "./theme.js";

start(document.getElementById("theme"));

// Errors in a person's words: what happened, and what to do.

import { t, type Key } from "./i18n";
import { RequestError } from "./api";

const words: Record<string, [Key, Key]> = {
  network: ["errorNetwork", "adviceNetwork"],
  broken: ["errorBroken", "adviceBroken"],
  input_too_long: ["errorTooLong", "adviceTooLong"],
  too_large: ["errorTooLong", "adviceTooLong"],
  overloaded: ["errorOverloaded", "adviceOverloaded"],
  loading: ["errorLoading", "adviceLoading"],
  draining: ["errorDraining", "adviceDraining"],
  cancelled: ["errorDraining", "adviceDraining"],
  deadline: ["errorDeadline", "adviceDeadline"],
  no_usable_output: ["errorNoOutput", "adviceNoOutput"],
  unauthorized: ["errorUnauthorized", "adviceUnauthorized"],
  forbidden_origin: ["errorForbidden", "adviceForbidden"],
  internal: ["errorInternal", "adviceInternal"],
};

export interface Problem {
  code: string;
  text: string;
  advice: string;
  detail: string; // the server's own words
}

export function explain(error: unknown): Problem {
  const e = error instanceof RequestError ? error : new RequestError("internal", String(error));
  const [text, advice] = words[e.code] ?? ["errorInvalid", "adviceInvalid"];
  return { code: e.code, text: t(text), advice: t(advice), detail: e.message };
}

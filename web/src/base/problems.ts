// Errors in a person's words: what happened, and what to do.

import { RequestError } from "./api";
import { t, type Key } from "./i18n";

/** Every code that the server's errors can have, and two of our own: "network" and "broken". */
const words: Record<string, [Key, Key]> = {
  network: ["errorNetwork", "adviceNetwork"],
  broken: ["errorBroken", "adviceBroken"],
  invalid_value: ["errorInvalid", "adviceInvalid"],
  invalid_json: ["errorFormat", "adviceFormat"],
  unsupported_media_type: ["errorFormat", "adviceFormat"],
  input_too_long: ["errorTooLong", "adviceTooLong"],
  too_large: ["errorTooLarge", "adviceTooLarge"],
  unauthorized: ["errorUnauthorized", "adviceUnauthorized"],
  forbidden_origin: ["errorForbidden", "adviceForbidden"],
  not_found: ["errorNotFound", "adviceNotFound"],
  method_not_allowed: ["errorNotFound", "adviceNotFound"],
  model_not_found: ["errorModel", "adviceModel"],
  request_timeout: ["errorSlowSend", "adviceSlowSend"],
  no_usable_output: ["errorNoOutput", "adviceNoOutput"],
  overloaded: ["errorOverloaded", "adviceOverloaded"],
  loading: ["errorLoading", "adviceLoading"],
  draining: ["errorDraining", "adviceDraining"],
  cancelled: ["errorDraining", "adviceDraining"],
  deadline: ["errorDeadline", "adviceDeadline"],
  internal: ["errorInternal", "adviceInternal"],
};

export interface Problem {
  code: string;
  text: string;
  advice: string;
  detail: string; // the server's own words
}

export function asRequestError(error: unknown): RequestError {
  return error instanceof RequestError ? error : new RequestError("internal", String(error));
}

export function explain(error: unknown): Problem {
  const e = asRequestError(error);
  const [text, advice] = words[e.code] ?? ["errorInternal", "adviceInternal"];
  const busy = e.code === "overloaded" && e.retryAfter !== null;
  return {
    code: e.code,
    text: t(text),
    advice: busy ? t("adviceOverloadedIn", { s: e.retryAfter! }) : t(advice),
    detail: e.message,
  };
}

/**
 * The API's reference, to be read. ReDoc makes its styles itself, so they need the nonce that the policy of this answer
 * names. Its search would run in a worker made of a blob, which the policy does not allow.
 */

const { nonce } = document.querySelector("style");
globalThis.Redoc.init("openapi.json", { nonce, disableSearch: true }, document.getElementById("reference"));

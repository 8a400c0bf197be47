// No text becomes HTML, not even by the library: where the browser knows trusted types, signs that
// begin a tag are escaped.
globalThis.trustedTypes?.createPolicy("default", {
  createHTML: (text) => text.replace(/[&<]/g, (letter) => `&#${letter.charCodeAt(0)};`),
});

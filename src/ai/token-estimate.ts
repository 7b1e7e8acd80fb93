/** Estimates the number of tokens of a text: one token for every four bytes of UTF-8. */
export const estimateTokens = (text: string) => Math.ceil(Buffer.byteLength(text) / 4)

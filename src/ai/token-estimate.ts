/** About how many tokens a model takes a text for, where nobody has counted: four bytes are one. */
export const estimateTokens = (text: string) => Math.ceil(Buffer.byteLength(text) / 4)

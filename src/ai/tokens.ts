/** About how many tokens a model takes a text for, where nobody has counted: four bytes are one. */
export const tokensIn = (text: string) => Math.ceil(Buffer.byteLength(text) / 4)

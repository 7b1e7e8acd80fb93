/** Estimates the number of tokens of a text: one token for every four bytes of UTF-8. */
export const estimateTokens = (text: string) => Math.ceil(Buffer.byteLength(text) / 4)

/** Estimates the number of tokens of messages, whose contents are not written as JSON because they may be large. */
export const estimateMessageTokens = (messages: readonly { content?: unknown }[]): number =>
  messages.reduce((sum, { content, ...others }) => {
    const text = typeof content === 'string' ? content : ''
    return sum + estimateTokens(text) + estimateTokens(JSON.stringify(others))
  }, 0)

/** Estimates the number of tokens of a text: one token for every four bytes of UTF-8. */
export const estimateTokens = (text: string) => Math.ceil(Buffer.byteLength(text) / 4)

/** Estimates the number of tokens of messages, whose contents are not written as JSON because they may be large. */
export const estimateMessageTokens = (messages: readonly { content?: unknown }[]): number =>
  messages.reduce((sum, { content, ...others }) => {
    const tokens = Array.isArray(content)
      ? content.reduce((parts: number, part) => parts + estimatePartTokens(part), 0)
      : estimateTokens(typeof content === 'string' ? content : '')
    return sum + tokens + estimateTokens(JSON.stringify(others))
  }, 0)

const TOKENS_OF_PICTURE = 1_000 // about; it has nothing to do with the length of its text

const estimatePartTokens = ({ text }: { text?: unknown }) =>
  typeof text === 'string' ? estimateTokens(text) : TOKENS_OF_PICTURE

import { InexactNumber, parseExactJson, toInexactNumberError } from '../../core/exact-numbers'
import type { CodeFlaw } from './code-mirror'

const lineAt = (text: string, position: number) => text.slice(0, position).split('\n').length

/** Returns where a text stops being JSON, or has a number that would be changed, or undefined when it is JSON. */
export function findJsonFlaw(text: string): CodeFlaw | undefined {
  try {
    parseExactJson(text)
  } catch (error) {
    if (error instanceof InexactNumber)
      return { line: lineAt(text, error.at), message: toInexactNumberError(error).message }
    const { message } = error as Error
    const position = /at position (\d+)/.exec(message)?.[1]
    const line = position === undefined ? text.split('\n').length : lineAt(text, Number(position))
    return { line, message: `This is not JSON yet: ${message}` }
  }
  return undefined
}

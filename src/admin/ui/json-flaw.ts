import type { CodeFlaw } from './code-mirror'

const lineAt = (text: string, position: number) => text.slice(0, position).split('\n').length

/** Returns where a text stops being JSON, or undefined when it is JSON. */
export function findJsonFlaw(text: string): CodeFlaw | undefined {
  try {
    JSON.parse(text)
  } catch (error) {
    const { message } = error as Error
    const position = /at position (\d+)/.exec(message)?.[1]
    const line = position === undefined ? text.split('\n').length : lineAt(text, Number(position))
    return { line, message: `This is not JSON yet: ${message}` }
  }
  return undefined
}

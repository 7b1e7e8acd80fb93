import sanitize from 'sanitize-html'
import { DEPTH, rules } from './html'

declare const self: Worker

/** What is left of the HTML, or what is wrong with it. */
export type Sanitized = { html: string } | { flaw: string }

// Runs in a thread of its own, one text at a time.
self.onmessage = ({ data }: MessageEvent<string>) => {
  let depth = 0
  const onOpenTag = () => {
    if (++depth > DEPTH) throw new RangeError()
  }
  try {
    const html = sanitize(data, { ...rules, onOpenTag, onCloseTag: () => void depth-- })
    self.postMessage({ html } satisfies Sanitized)
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
    self.postMessage({ flaw: `Its elements stand in each other more than ${DEPTH} deep.` } satisfies Sanitized)
  }
}

import sanitize from 'sanitize-html'
import { MAX_ELEMENT_DEPTH, sanitizePolicy } from './html-policy'

declare const self: Worker

/** The sanitized HTML, or an error message. */
export type SanitizeResult = { html: string } | { flaw: string }

// Runs in a thread of its own, with one text at a time.
self.onmessage = ({ data }: MessageEvent<string>) => {
  let depth = 0
  const onOpenTag = () => {
    if (++depth > MAX_ELEMENT_DEPTH) throw new RangeError()
  }
  try {
    const html = sanitize(data, { ...sanitizePolicy, onOpenTag, onCloseTag: () => void depth-- })
    self.postMessage({ html } satisfies SanitizeResult)
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
    self.postMessage({
      flaw: `Elements are nested more than ${MAX_ELEMENT_DEPTH} levels deep.`,
    } satisfies SanitizeResult)
  }
}

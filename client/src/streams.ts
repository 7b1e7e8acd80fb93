import type { Answer } from './errors'
import { platform } from './platform'

/** An answer whose text can be read while it arrives. */
export type TextAnswer = Answer & { chunks(): AsyncGenerator<string, void> }

/** Where responses have no body to read, as in React Native, streams need `XMLHttpRequest`. */
export const canFetchStreams = () => 'body' in Response.prototype

export const withChunks = (response: Response): TextAnswer =>
  Object.assign(response, { chunks: () => readChunks(response) })

async function* readChunks(response: Response) {
  if (!response.body) return void (yield await response.text())
  const [reader, decoder] = [response.body.getReader(), new TextDecoder()]
  try {
    for (;;) {
      const { done, value } = await reader.read()
      const text = decoder.decode(value, { stream: !done })
      if (text) yield text
      if (done) return
    }
  } finally {
    reader.cancel().catch(() => {}) // the stream may have ended already
  }
}

type SentRequest = {
  method: string
  headers: Record<string, string>
  body?: unknown
  signal?: AbortSignal
  credentials?: 'include'
}
export type UploadProgress = { sent: number; total: number }

/** Does what `fetch` does, and tells the progress of the upload. The text of the answer can be read as it arrives. */
export function sendByXhr(
  url: string,
  { method, headers, body, signal, credentials }: SentRequest,
  onProgress?: (progress: UploadProgress) => void,
): Promise<TextAnswer> {
  const request = new platform.XMLHttpRequest!()
  let wake = () => {}
  let isDone = false
  async function* chunks() {
    try {
      for (let read = 0; ; ) {
        const text = request.responseText.slice(read)
        read += text.length
        if (text) yield text
        else if (isDone) return assertArrived()
        else
          await new Promise<void>((resolve) => {
            wake = resolve
          })
      }
    } finally {
      request.abort()
    }
  }
  const assertArrived = () => {
    signal?.throwIfAborted()
    if (!request.status) throw new TypeError('The connection was lost.')
  }
  async function text() {
    let all = ''
    for await (const chunk of chunks()) all += chunk
    return all
  }
  return new Promise((resolve, reject) => {
    request.open(method, url)
    for (const [name, value] of Object.entries(headers)) request.setRequestHeader(name, value)
    request.withCredentials = credentials === 'include'
    if (onProgress) request.upload.onprogress = ({ loaded, total }) => onProgress({ sent: loaded, total })
    request.onreadystatechange = () => {
      const { readyState, status, statusText } = request
      const answerHeaders = { get: (name: string) => request.getResponseHeader(name) }
      if (readyState > 1 && status)
        resolve({ ok: status < 300, status, statusText, headers: answerHeaders, text, chunks })
    }
    request.onprogress = () => wake()
    request.onloadend = () => {
      isDone = true
      wake()
      reject(signal?.aborted ? signal.reason : new TypeError('The server could not be reached.'))
    }
    signal?.addEventListener('abort', () => request.abort(), { once: true })
    if (signal?.aborted) reject(signal.reason)
    else request.send(body)
  })
}

export async function* readLines(chunks: AsyncIterable<string>): AsyncGenerator<string, void> {
  let rest = ''
  for await (const chunk of chunks) {
    const lines = (rest + chunk).split('\n')
    rest = lines.pop() ?? ''
    yield* lines
  }
  if (rest) yield rest
}

export type SentEvent = { type: string; id: string; data: string }

/** The server-sent events of a text as they arrive. One that was cut off is left out. */
export async function* readEvents(chunks: AsyncIterable<string>): AsyncGenerator<SentEvent, void> {
  let [type, id, data] = ['', '', [] as string[]]
  for await (const line of readLines(chunks)) {
    const [, name, value = ''] = /^(\w+): ?(.*?)\r?$/s.exec(line) ?? []
    if (name === 'event') type = value
    else if (name === 'id') id = value
    else if (name === 'data') data.push(value)
    else if (!line.trim()) {
      if (data.length) yield { type, id, data: data.join('\n') }
      ;[type, data] = ['', []]
    }
  }
}

/** What only some platforms have. Projects without the types of a browser compile this, too. */
type Platform = {
  document?: object
  localStorage?: TokenStorage
  location?: { href: string; assign(url: string): void }
  navigator?: {
    locks?: {
      request<Result>(name: string, options: { signal: AbortSignal }, work: () => Promise<Result>): Promise<Result>
    }
    credentials?: {
      create(options: object): Promise<PasskeyCredential | null>
      get(options: object): Promise<PasskeyCredential | null>
    }
  }
  XMLHttpRequest?: new () => UploadingRequest
  addEventListener?(
    type: 'storage',
    listener: (event: { key: string | null; oldValue: string | null; newValue: string | null }) => void,
  ): void
}

/** Where a session is kept: `localStorage`, `sessionStorage`, or `AsyncStorage` of React Native. */
export type TokenStorage = {
  getItem(key: string): string | null | Promise<string | null>
  setItem(key: string, value: string): unknown
  removeItem(key: string): unknown
}

export type PasskeyCredential = {
  id: string
  rawId: ArrayBuffer
  response: {
    clientDataJSON: ArrayBuffer
    attestationObject?: ArrayBuffer
    authenticatorData?: ArrayBuffer
    signature?: ArrayBuffer
    userHandle?: ArrayBuffer | null
    getTransports?(): string[]
  }
}

/** The part of `XMLHttpRequest` that is used where `fetch` has neither streams nor the progress of uploads. */
export type UploadingRequest = {
  readonly readyState: number
  readonly status: number
  readonly statusText: string
  readonly responseText: string
  readonly upload: { onprogress: ((event: { loaded: number; total: number }) => void) | null }
  withCredentials: boolean
  onreadystatechange: (() => void) | null
  onprogress: (() => void) | null
  onloadend: (() => void) | null
  open(method: string, url: string): void
  setRequestHeader(name: string, value: string): void
  getResponseHeader(name: string): string | null
  send(body?: unknown): void
  abort(): void
}

export const platform = globalThis as unknown as Platform

/**
 * Returns the storage of the browser, or one in memory where there is none or the page may not use it. That of a server
 * would be shared by all its users.
 */
export function findStorage(): TokenStorage {
  try {
    if (platform.document && platform.localStorage) return platform.localStorage
  } catch {
    // A sandboxed page has no storage.
  }
  const items = new Map<string, string>()
  return {
    getItem: (key) => items.get(key) ?? null,
    setItem: (key, value) => items.set(key, value),
    removeItem: (key) => items.delete(key),
  }
}

/** Waits, or throws the reason of the signal as soon as it aborts. */
export const waitFor = (ms: number, signal?: AbortSignal) =>
  new Promise<void>((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason)
    const abort = () => {
      clearTimeout(timer)
      reject(signal?.reason)
    }
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', abort)
      resolve()
    }, ms)
    signal?.addEventListener('abort', abort, { once: true })
  })

import { queryOptions } from '@tanstack/react-query'
import { api, fetchData } from './client'
import { noteAnswer } from './connection'
import { ConnectionLost, readProblem } from './problem'
import { commonHeaders, waitForSignIn } from './session'

const FILES_PATH = '/api/files/'

/** Returns the file that a value of a file field names, by its id and name; undefined for an address elsewhere. */
export function parseFileUrl(value: unknown): { id: string; name: string } | undefined {
  const text = typeof value === 'string' && value.startsWith(FILES_PATH) ? value.slice(FILES_PATH.length) : ''
  const [id, name = ''] = text.split('/')
  if (!id) return
  try {
    return { id, name: decodeURIComponent(name) }
  } catch {
    return { id, name }
  }
}

export const fileQuery = (id: string) =>
  queryOptions({
    queryKey: ['files', 'one', id],
    queryFn: () => fetchData(api.GET('/api/files/{id}', { params: { path: { id } } })),
  })

export type StoredFile = Awaited<ReturnType<NonNullable<ReturnType<typeof fileQuery>['queryFn']>>>

/** The content of a file. An element with its address would send no headers, so that the tenant might not be known. */
export const fileContentQuery = (url: string) =>
  queryOptions({
    queryKey: ['files', 'content', url],
    queryFn: async ({ signal }) => {
      const response = await fetch(url, { headers: commonHeaders(), signal })
      if (!response.ok) throw await readProblem(response)
      return response.blob()
    },
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 60_000,
  })

/** Uploads a file, and tells which part of it has been sent, from 0 to 1. @throws ApiProblem, ConnectionLost */
export async function uploadFile(
  file: File,
  onProgress: (part: number) => void,
  { keep = false } = {},
): Promise<StoredFile> {
  for (;;) {
    const response = await sendFile(file, onProgress, keep)
    noteAnswer()
    if (response.ok) return response.json()
    if (response.status !== 401) throw await readProblem(response)
    await waitForSignIn()
  }
}

/** Sends a file by XMLHttpRequest, because `fetch` does not tell how much was sent. */
function sendFile(file: File, onProgress: (part: number) => void, keep: boolean): Promise<Response> {
  const { promise, resolve, reject } = Promise.withResolvers<Response>()
  const request = new XMLHttpRequest()
  request.open('POST', `/api/files?${new URLSearchParams({ name: file.name, ...(keep && { keep: 'true' }) })}`)
  for (const [name, value] of Object.entries(commonHeaders())) request.setRequestHeader(name, value)
  request.setRequestHeader('content-type', file.type || 'application/octet-stream')
  request.upload.onprogress = ({ loaded, total }) => onProgress(total ? loaded / total : 0)
  request.onload = () => resolve(new Response(request.responseText, { status: request.status }))
  request.onerror = () => reject(new ConnectionLost())
  request.send(file)
  return promise
}

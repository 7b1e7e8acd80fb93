import { ApiProblem, ConnectionLost } from '../../api/problem'
import { commonHeaders } from '../../api/session'

/** Sends an archive, and calls `onProgress` with the part that is sent. `fetch` does not tell how much that is. */
export function uploadSite(archive: Blob, spa: boolean, onProgress: (part: number) => void): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const request = new XMLHttpRequest()
  request.open('PUT', `/api/sites?spa=${spa}`)
  for (const [name, value] of Object.entries(commonHeaders())) request.setRequestHeader(name, value)
  request.setRequestHeader('content-type', 'application/x-tar')
  request.responseType = 'json'
  request.upload.onprogress = ({ loaded, total }) => onProgress(loaded / total)
  request.onerror = () => reject(new ConnectionLost())
  request.onload = () => (request.status === 201 ? resolve() : reject(toProblem(request)))
  request.send(archive)
  return promise
}

function toProblem(request: XMLHttpRequest): ApiProblem {
  const { code = 'UNKNOWN', message, details } = request.response ?? {}
  const text = message ?? `The server answered with the status ${request.status}.`
  return new ApiProblem(request.status, code, text, details, request.getResponseHeader('x-request-id'))
}

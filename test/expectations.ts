import { expect } from 'bun:test'

/** What `statusAndCode` returns for errors that many routes share. */
export const INVALID_INPUT = [400, 'INVALID_INPUT']
export const INVALID_TOKEN = [400, 'INVALID_TOKEN']
export const UNAUTHENTICATED = [401, 'UNAUTHENTICATED']
export const FORBIDDEN = [403, 'FORBIDDEN']
export const USER_NOT_FOUND = [404, 'USER_NOT_FOUND']
export const WORKSPACE_NOT_FOUND = [404, 'WORKSPACE_NOT_FOUND']
export const RATE_LIMITED = [429, 'RATE_LIMITED']

/** Matches an id that the server has made. */
export const ID = expect.stringMatching(/^[0-9a-f]{8}-[0-9a-f]{4}-7/)
/** Matches a time of the API. */
export const TIME = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)

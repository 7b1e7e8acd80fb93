import { version } from '../../package.json'

/** Tell clients the version of the server. Responses with a session or a profile have them, so others need not. */
export const VERSION_HEADERS = { 'x-atoll-version': version }

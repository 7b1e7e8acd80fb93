import { version } from '../../package.json'

/** Tells clients which version answers. They hear it with a session or a profile, so other answers need not say it. */
export const VERSION_HEADERS = { 'x-atoll-version': version }

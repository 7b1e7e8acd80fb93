import { getServerRun } from './server-processes'

const RUN_LENGTH = 18

/** This run of the server: the ids of all its processes begin with it. */
export const SERVER_RUN = getServerRun() ?? crypto.randomUUID().slice(0, RUN_LENGTH)

/** This process, among those that share a database. All ids have the same length. */
export const PROCESS_ID = `${SERVER_RUN}${crypto.randomUUID().slice(RUN_LENGTH)}`

import { observable } from './observable'
import type { ApiProblem } from './problem'
import { commonHeaders } from './session'

const RETRY_INTERVAL_MS = 3_000
const SUSPENDED = 'TENANT_SUSPENDED'

/** Whether the operator has suspended the tenant. While it is so, the server is asked again until it is resumed. */
export const suspension = observable<'none' | 'suspended'>('none')

/** Notices what a refusal says about the tenant. */
export function noteSuspension({ code }: ApiProblem) {
  if (code === SUSPENDED) suspension.set('suspended')
}

async function checkUntilResumed() {
  while (suspension.get() === 'suspended') {
    await new Promise((resolve) => setTimeout(resolve, RETRY_INTERVAL_MS))
    const answer = await fetch('/api/configurations/app-configuration', { headers: commonHeaders() })
      .then((response) => response.json())
      // A server that cannot be reached says nothing about the tenant.
      .catch(() => ({ code: SUSPENDED }))
    if (answer?.code !== SUSPENDED) suspension.set('none')
  }
}

suspension.subscribe(() => {
  if (suspension.get() === 'suspended') void checkUntilResumed()
})

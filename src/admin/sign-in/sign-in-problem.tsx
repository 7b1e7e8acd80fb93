import { useEffect, useMemo, useState } from 'react'
import { ApiProblem } from '../api/problem'
import { ProblemMessage } from '../ui/problem-message'

const MINUTE_S = 60
const clock = new Intl.DateTimeFormat(undefined, { timeStyle: 'short' })

/** Why a sign-in failed. After too many attempts, it says when the next one is possible. */
export function SignInProblem({ error }: { error: unknown }) {
  const waitS = error instanceof ApiProblem ? error.retryAfterS : undefined
  return waitS === undefined ? <ProblemMessage m={0} error={error} /> : <TooManyAttempts error={error} waitS={waitS} />
}

function TooManyAttempts({ error, waitS }: { error: unknown; waitS: number }) {
  const [isOver, setIsOver] = useState(false)
  // Each refusal begins its own wait, also one that is as long as that before.
  const next = useMemo(() => clock.format(Date.now() + waitS * 1_000), [error, waitS])
  useEffect(() => {
    setIsOver(false)
    const timer = setTimeout(() => setIsOver(true), waitS * 1_000)
    return () => clearTimeout(timer)
  }, [error, waitS])
  if (isOver) return null
  const moment = waitS < MINUTE_S ? `in ${waitS} s` : `at ${next}`
  return <ProblemMessage error={`There were too many attempts. Try again ${moment}.`} />
}

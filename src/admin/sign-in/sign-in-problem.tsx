import { useEffect, useState } from 'react'
import { ApiProblem } from '../api/problem'
import { ProblemMessage } from '../ui/problem-message'

const clock = new Intl.DateTimeFormat(undefined, { timeStyle: 'short' })

/** What a sign-in failed at. After too many attempts, it says when the next one is possible. */
export function SignInProblem({ error }: { error: unknown }) {
  const wait = error instanceof ApiProblem ? error.retryAfterS : undefined
  const [isOver, setIsOver] = useState(false)
  useEffect(() => {
    setIsOver(false)
    if (wait === undefined) return
    const timer = setTimeout(() => setIsOver(true), wait * 1_000)
    return () => clearTimeout(timer)
  }, [wait])
  if (wait === undefined) return <ProblemMessage m={0} error={error} />
  if (isOver) return null
  const next = clock.format(Date.now() + wait * 1_000)
  return (
    <ProblemMessage error={`There were too many attempts. Try again ${wait < 60 ? `in ${wait} s` : `at ${next}`}.`} />
  )
}

import { useMutation } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useEffect, useRef } from 'react'
import { api, fetchData } from '../api/client'
import { startSession } from '../api/queries'
import { FullPage } from '../ui/full-page'
import { ProblemMessage } from '../ui/problem-message'

/** Signs in by the token of a link, which works once, and goes on to the home screen. */
export function SignInLink() {
  const navigate = useNavigate()
  const hasStarted = useRef(false)
  const { mutate, error } = useMutation({
    mutationFn: (token: string) => fetchData(api.POST('/api/signin/link', { body: { token } })),
    onSuccess: async () => {
      await startSession()
      await navigate({ to: '/home', replace: true })
    },
  })
  useEffect(() => {
    if (hasStarted.current) return
    hasStarted.current = true
    mutate(location.hash.slice(1))
  }, [mutate])
  return <FullPage>{error ? <ProblemMessage error={error} /> : <p role="status">Signing in…</p>}</FullPage>
}

import { Anchor, Text, Title } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { Link, useNavigate } from '@tanstack/react-router'
import { useEffect, useRef, useState } from 'react'
import { api, fetchData } from '../api/client'
import { startSession } from '../api/queries'
import { FullPage } from '../ui/full-page'
import { ProblemMessage } from '../ui/problem-message'
import { findChallenge, SecondFactorForm } from './second-factor-form'

/** Why a provider or the server refused a sign-in, by the code in the address. */
const PROVIDER_PROBLEMS: Record<string, string> = {
  PROVIDER_REFUSED: 'The provider did not sign you in.',
  PROVIDER_ERROR: 'The provider returned an unexpected response. Try again later.',
  EMAIL_EXISTS: 'Another account has this e-mail address. Sign in to it, and link the provider in your account.',
  SIGNUP_CLOSED: 'Sign-up is disabled here. Ask an administrator for an account.',
}

/** Returns the token of a mailed link, which is in the fragment, or what a provider sent back. */
function readSignInParameters() {
  const parameters = new URLSearchParams(location.search)
  const [redirectToken, code] = [parameters.get('rt'), parameters.get('error')]
  return { token: location.hash.slice(1), redirectToken, code }
}

type SignInParameters = ReturnType<typeof readSignInParameters>

const signIn = ({ token, redirectToken }: SignInParameters) =>
  redirectToken
    ? fetchData(api.POST('/api/auth/callback', { body: { rt: redirectToken } }))
    : fetchData(api.POST('/api/signin/link', { body: { token } }))

/** Signs in by the token of a link or of a provider, which works once, and goes on to the home screen. */
export function SignInLink() {
  const navigate = useNavigate()
  const hasStarted = useRef(false)
  const [parameters] = useState(readSignInParameters)
  const goHome = async () => {
    await startSession()
    await navigate({ to: '/home', search: {}, replace: true })
  }
  const { mutate, error } = useMutation({ mutationFn: () => signIn(parameters), onSuccess: goHome })
  useEffect(() => {
    if (hasStarted.current || parameters.code) return
    hasStarted.current = true
    mutate()
  }, [mutate, parameters])
  const challenge = findChallenge(error)
  const problem = parameters.code
    ? (PROVIDER_PROBLEMS[parameters.code] ?? `The sign-in failed: ${parameters.code}.`)
    : challenge
      ? undefined
      : error
  return (
    <FullPage>
      {challenge && (
        <>
          <Title order={1} mb="md">
            Sign in
          </Title>
          <SecondFactorForm challenge={challenge} onDone={goHome} onCancel={() => navigate({ to: '/', search: {} })} />
        </>
      )}
      {problem && (
        <>
          <ProblemMessage m={0} error={problem} />
          <Text ta="center">
            <Anchor component={Link} to="/home" search={{} as never}>
              Go to the sign-in
            </Anchor>
          </Text>
        </>
      )}
      {!challenge && !problem && <p role="status">Signing in…</p>}
    </FullPage>
  )
}

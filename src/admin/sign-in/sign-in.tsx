import { Button, PasswordInput, Stack, TextInput, Title } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { api, fetchData } from '../api/client'
import { ApiProblem } from '../api/problem'
import { startSession } from '../api/queries'
import { getNamedTenant, nameTenant } from '../api/session'
import { Brand } from '../branding/brand'
import { FullPage } from '../ui/full-page'
import { ProblemMessage } from '../ui/problem-message'

type Credentials = { username: string; password: string } | { challenge: string; code: string }

const isSecondFactorRequired = (error: unknown): error is ApiProblem & { details: { challenge: string } } =>
  error instanceof ApiProblem && error.code === 'SECOND_FACTOR_REQUIRED'

/** The form that signs in with a password and, where the user has one, a second factor. */
export function SignInForm({ username: known, onDone }: { username?: string; onDone: () => void }) {
  const [username, setUsername] = useState(known ?? '')
  const [password, setPassword] = useState('')
  const [code, setCode] = useState('')
  const [tenant, setTenant] = useState(getNamedTenant() ?? '')
  const [challenge, setChallenge] = useState<string>()
  const signIn = useMutation({
    mutationFn: (body: Credentials) => fetchData(api.POST('/api/signin', { body })),
    onSuccess: onDone,
    onError: (error) => isSecondFactorRequired(error) && setChallenge(error.details.challenge),
  })
  const tenantIsMissing = signIn.error instanceof ApiProblem && signIn.error.code === 'TENANT_NOT_FOUND'
  const submit = (event: FormEvent) => {
    event.preventDefault()
    if (tenant) nameTenant(tenant)
    signIn.mutate(challenge ? { challenge, code } : { username, password })
  }
  return (
    <form onSubmit={submit}>
      <Stack gap="sm">
        {(tenantIsMissing || tenant) && !known && (
          <TextInput label="Tenant" value={tenant} onChange={(event) => setTenant(event.currentTarget.value)} />
        )}
        {challenge ? (
          <TextInput
            label="Code of your second factor"
            description="Six digits from your app, or a recovery code."
            autoComplete="one-time-code"
            inputMode="numeric"
            data-autofocus
            autoFocus
            value={code}
            onChange={(event) => setCode(event.currentTarget.value)}
          />
        ) : (
          <>
            <TextInput
              label="Username or e-mail address"
              autoComplete="username webauthn"
              autoFocus={!known}
              value={username}
              onChange={(event) => setUsername(event.currentTarget.value)}
            />
            <PasswordInput
              label="Password"
              autoComplete="current-password"
              autoFocus={!!known}
              value={password}
              onChange={(event) => setPassword(event.currentTarget.value)}
            />
          </>
        )}
        {signIn.error && !isSecondFactorRequired(signIn.error) && <ProblemMessage error={signIn.error} />}
        <Button type="submit" size="sm" loading={signIn.isPending}>
          Sign in
        </Button>
      </Stack>
    </form>
  )
}

/** The screen of somebody who is not signed in. */
export function SignIn() {
  return (
    <FullPage>
      <Brand isLarge />
      <Title order={1} mb="md">
        Sign in
      </Title>
      <SignInForm onDone={startSession} />
    </FullPage>
  )
}

import { Anchor, Button, Divider, PasswordInput, Stack, Text, TextInput } from '@mantine/core'
import { IconFingerprint, IconMail } from '@tabler/icons-react'
import { useMutation, useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { type FormEvent, useEffect, useRef, useState } from 'react'
import { api, fetchData } from '../api/client'
import { ApiProblem } from '../api/problem'
import { getNamedTenant, nameTenant } from '../api/session'
import { EmailSignInForm } from './email-sign-in-form'
import { findPasskeyObstacle, isAutofillUsable, signInByPasskey } from './passkey'
import { methodsQuery, ProviderButtons } from './provider-buttons'
import { findChallenge, SecondFactorForm } from './second-factor-form'
import { SignInProblem } from './sign-in-problem'

/** Offers the passkeys of this device in the input of the username. */
function usePasskeyAutofill(onDone: () => void) {
  const latestOnDone = useRef(onDone)
  latestOnDone.current = onDone
  useEffect(() => {
    let isGone = false
    const offer = async () => {
      if (!(await isAutofillUsable()) || isGone) return
      await signInByPasskey({ isAutofill: true })
      latestOnDone.current()
    }
    // Somebody who signs in by another way leaves the offer open, and a host may not have passkeys.
    offer().catch(() => {})
    return () => {
      isGone = true
    }
  }, [])
}

type SignInFormProps = {
  /** Whose session has ended. */
  username?: string
  onDone: () => void
}

/** The form that signs in: by a password and, where the user has one, a second factor; by a passkey, a mail or a provider. */
export function SignInForm({ username: known, onDone }: SignInFormProps) {
  const [challenge, setChallenge] = useState<string>()
  const [isByMail, setIsByMail] = useState(false)
  usePasskeyAutofill(onDone)
  if (challenge)
    return <SecondFactorForm challenge={challenge} onDone={onDone} onCancel={() => setChallenge(undefined)} />
  if (isByMail)
    return <EmailSignInForm onDone={onDone} onChallenge={setChallenge} onCancel={() => setIsByMail(false)} />
  return (
    <Stack gap="sm">
      <PasswordForm known={known} onDone={onDone} onChallenge={setChallenge} />
      <OtherWays hasProviders={!known} onDone={onDone} onMail={() => setIsByMail(true)} />
    </Stack>
  )
}

type PasswordFormProps = { known?: string; onDone: () => void; onChallenge: (challenge: string) => void }

function PasswordForm({ known, onDone, onChallenge }: PasswordFormProps) {
  const [username, setUsername] = useState(known ?? '')
  const [password, setPassword] = useState('')
  const [tenant, setTenant] = useState(getNamedTenant() ?? '')
  const signIn = useMutation({
    mutationFn: () => fetchData(api.POST('/api/signin', { body: { username, password } })),
    onSuccess: onDone,
    onError: (error) => {
      const challenge = findChallenge(error)
      if (challenge) onChallenge(challenge)
    },
  })
  const isTenantMissing = signIn.error instanceof ApiProblem && signIn.error.code === 'TENANT_NOT_FOUND'
  const submit = (event: FormEvent) => {
    event.preventDefault()
    if (tenant) nameTenant(tenant)
    signIn.mutate()
  }
  return (
    <form onSubmit={submit}>
      <Stack gap="sm">
        {(isTenantMissing || tenant) && !known && (
          <TextInput label="Tenant" value={tenant} onChange={(event) => setTenant(event.currentTarget.value)} />
        )}
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
        {signIn.error && !findChallenge(signIn.error) && <SignInProblem error={signIn.error} />}
        <Button type="submit" size="sm" loading={signIn.isPending}>
          Sign in
        </Button>
        {!known && (
          <Anchor component={Link} to="/reset-password" size="sm">
            Forgotten your password?
          </Anchor>
        )}
      </Stack>
    </form>
  )
}

type OtherWaysProps = { hasProviders: boolean; onDone: () => void; onMail: () => void }

function OtherWays({ hasProviders, onDone, onMail }: OtherWaysProps) {
  const { data: methods } = useQuery(methodsQuery)
  const signIn = useMutation({ mutationFn: () => signInByPasskey(), onSuccess: onDone })
  const obstacle = findPasskeyObstacle()
  return (
    <>
      {obstacle ? (
        <Text size="sm" c="dimmed">
          {obstacle}
        </Text>
      ) : (
        <>
          <Divider label="or" />
          <Button
            variant="default"
            size="sm"
            leftSection={<IconFingerprint size={16} />}
            loading={signIn.isPending}
            onClick={() => signIn.mutate()}
          >
            Sign in with a passkey
          </Button>
        </>
      )}
      {signIn.error && <SignInProblem error={signIn.error} />}
      {methods?.email && (
        <Button variant="default" size="sm" leftSection={<IconMail size={16} />} onClick={onMail}>
          Sign in by e-mail
        </Button>
      )}
      {hasProviders && <ProviderButtons />}
    </>
  )
}

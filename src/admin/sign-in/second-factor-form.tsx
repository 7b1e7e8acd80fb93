import { Anchor, Button, Stack, Text, TextInput } from '@mantine/core'
import { IconFingerprint } from '@tabler/icons-react'
import { useMutation } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { api, fetchData } from '../api/client'
import { ApiProblem } from '../api/problem'
import { findPasskeyObstacle, signInByPasskey } from './passkey'
import { SignInProblem } from './sign-in-problem'

/** Returns the challenge of a sign-in that needs a second factor, or undefined. */
export const findChallenge = (error: unknown): string | undefined =>
  error instanceof ApiProblem && error.code === 'SECOND_FACTOR_REQUIRED'
    ? (error.details as { challenge: string }).challenge
    : undefined

type SecondFactorFormProps = { challenge: string; onDone: () => void; onCancel: () => void }

/** The second step of a sign-in: a code of the app, a recovery code, or a passkey. */
export function SecondFactorForm({ challenge, onDone, onCancel }: SecondFactorFormProps) {
  const [code, setCode] = useState('')
  const [isRecovery, setIsRecovery] = useState(false)
  const byCode = useMutation({
    mutationFn: () => fetchData(api.POST('/api/signin', { body: { challenge, code } })),
    onSuccess: onDone,
  })
  const byPasskey = useMutation({ mutationFn: () => signInByPasskey({ challenge }), onSuccess: onDone })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    byCode.mutate()
  }
  const switchKind = () => {
    setIsRecovery(!isRecovery)
    setCode('')
    byCode.reset()
  }
  const error = byCode.error ?? byPasskey.error
  const obstacle = findPasskeyObstacle()
  return (
    <form onSubmit={submit}>
      <Stack gap="sm">
        <TextInput
          key={isRecovery ? 'recovery' : 'app'}
          label={isRecovery ? 'Recovery code' : 'Second-factor code'}
          description={isRecovery ? 'Each of your recovery codes works once.' : 'Six digits from your app.'}
          autoComplete="one-time-code"
          inputMode={isRecovery ? 'text' : 'numeric'}
          autoFocus
          value={code}
          onChange={(event) => setCode(event.currentTarget.value)}
        />
        {error && <SignInProblem error={error} />}
        <Button type="submit" size="sm" loading={byCode.isPending}>
          Sign in
        </Button>
        {obstacle ? (
          <Text size="sm" c="dimmed">
            {obstacle}
          </Text>
        ) : (
          <Button
            variant="default"
            size="sm"
            leftSection={<IconFingerprint size={16} />}
            loading={byPasskey.isPending}
            onClick={() => byPasskey.mutate()}
          >
            Use a passkey instead
          </Button>
        )}
        <Text size="sm">
          <Anchor component="button" type="button" onClick={switchKind}>
            {isRecovery ? 'Use a code from the app' : 'Use a recovery code'}
          </Anchor>
          {' · '}
          <Anchor component="button" type="button" onClick={onCancel}>
            Start again
          </Anchor>
        </Text>
      </Stack>
    </form>
  )
}

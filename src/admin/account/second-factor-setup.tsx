import { Button, Group, Stack, Text, TextInput } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { api, fetchData } from '../api/client'
import type { NewSecondFactor } from '../api/schema'
import { CopyButton } from '../ui/copy-button'
import { ProblemMessage } from '../ui/problem-message'
import classes from './account.module.css'
import { QrCode } from './qr-code'

type SecondFactorSetupProps = {
  factor: NewSecondFactor
  onConfirmed: (recoveryCodes: string[]) => void
  onCancel: () => void
}

/** The secret for an authenticator app, and the first code, which proves that the app has it. */
export function SecondFactorSetup({ factor: { secret, uri }, onConfirmed, onCancel }: SecondFactorSetupProps) {
  const [code, setCode] = useState('')
  const confirm = useMutation({
    mutationFn: () => fetchData(api.POST('/api/me/totp/confirm', { body: { code } })),
    onSuccess: ({ recoveryCodes }) => onConfirmed(recoveryCodes),
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    confirm.mutate()
  }
  return (
    <form onSubmit={submit}>
      <div className={classes.setup}>
        <QrCode text={uri} label="QR code of the second factor" />
        <Stack gap="sm" className={classes.steps}>
          <Text size="sm">
            1. Read the code with an authenticator app, such as Aegis, 1Password or Google Authenticator. Or type this
            secret into it:
          </Text>
          <Group gap="xs">
            <span className={classes.secret}>{secret.match(/.{1,4}/g)?.join(' ')}</span>
            <CopyButton value={secret}>
              {({ copied, copy }) => (
                <Button variant="subtle" size="compact-xs" onClick={copy}>
                  {copied ? 'Copied' : 'Copy the secret'}
                </Button>
              )}
            </CopyButton>
          </Group>
          <TextInput
            label="2. Enter the six digits that the app shows"
            autoComplete="one-time-code"
            inputMode="numeric"
            autoFocus
            value={code}
            onChange={(event) => setCode(event.currentTarget.value)}
          />
          {confirm.error && <ProblemMessage m={0} error={confirm.error} />}
          <Group gap="xs">
            <Button type="submit" loading={confirm.isPending} disabled={!code}>
              Turn on
            </Button>
            <Button variant="subtle" color="gray" onClick={onCancel}>
              Cancel
            </Button>
          </Group>
        </Stack>
      </div>
    </form>
  )
}

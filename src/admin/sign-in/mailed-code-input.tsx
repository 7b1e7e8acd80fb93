import { TextInput, type TextInputProps } from '@mantine/core'

type MailedCodeInputProps = { onType: (code: string) => void } & Omit<TextInputProps, 'onChange'>

/** Takes the code of a mail. */
export const MailedCodeInput = ({ onType, ...props }: MailedCodeInputProps) => (
  <TextInput
    label="Code from the mail"
    autoComplete="one-time-code"
    inputMode="numeric"
    onChange={(event) => onType(event.currentTarget.value)}
    {...props}
  />
)

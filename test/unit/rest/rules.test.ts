import type { MessageInitShape } from '@bufbuild/protobuf';
import {
  createFileRegistry,
  create as createMessage,
  type DescService,
  type Message,
  setExtension,
} from '@bufbuild/protobuf';
import {
  EnumValueOptionsSchema,
  FileDescriptorProtoSchema,
  FieldDescriptorProto_Label as Label,
  MethodOptionsSchema,
  FieldDescriptorProto_Type as Type,
} from '@bufbuild/protobuf/wkt';
import { Code, ConnectError } from '@connectrpc/connect';
import { expect, test } from 'vitest';
import { http } from '../../../gen/google/api/annotations_pb.ts';
import type { HttpRuleSchema } from '../../../gen/google/api/http_pb.ts';
import { rest_name } from '../../../gen/queuedcrawler/v1/options_pb.ts';
import type { Method } from '../../../src/api/method.ts';
import { compatAdapters } from '../../../src/rest/compat/compat-adapters.ts';
import { createGateway } from '../../../src/rest/gateway.ts';

type Rule = MessageInitShape<typeof HttpRuleSchema>;

interface Shape {
  readonly rules: readonly Rule[];
  readonly words?: readonly (string | undefined)[];
  readonly fields?: readonly object[];
  readonly clientStreaming?: boolean;
}

/** A service whose methods all take and give `Msg`, one for each rule. */
function serviceOf({ rules, words = ['', 'a'], fields = [], clientStreaming }: Shape): DescService {
  const file = createMessage(FileDescriptorProtoSchema, {
    name: 't.proto',
    package: 't',
    syntax: 'proto3',
    messageType: [
      {
        name: 'Msg',
        field: [
          { name: 'name', number: 1, type: Type.STRING, label: Label.OPTIONAL },
          { name: 'list', number: 2, type: Type.STRING, label: Label.REPEATED },
          { name: 'kind', number: 3, type: Type.ENUM, typeName: '.t.Kind', label: Label.OPTIONAL },
          {
            name: 'inner',
            number: 4,
            type: Type.MESSAGE,
            typeName: '.t.Msg',
            label: Label.OPTIONAL,
          },
          ...fields,
        ],
        oneofDecl: [{ name: 'choice' }],
      },
    ],
    enumType: [
      {
        name: 'Kind',
        value: words.map((word, number) => {
          const options = createMessage(EnumValueOptionsSchema);
          if (word !== undefined) setExtension(options, rest_name, word);
          return { name: `KIND_${number}`, number, options };
        }),
      },
    ],
    service: [
      {
        name: 'S',
        method: rules.map((rule, index) => {
          const options = createMessage(MethodOptionsSchema);
          setExtension(options, http, rule as never);
          return {
            name: `M${index}`,
            inputType: '.t.Msg',
            outputType: '.t.Msg',
            clientStreaming: clientStreaming ?? false,
            options,
          };
        }),
      },
    ],
  });
  if (!fields.some((field) => 'oneofIndex' in field)) file.messageType[0]!.oneofDecl = [];
  const service = createFileRegistry(file, () => undefined).getService('t.S');
  if (service === undefined) throw new Error('no service');
  return service;
}

function start(shape: Shape) {
  const methods = serviceOf(shape).methods.map(
    (desc): Method => ({ kind: 'unary', desc, handle: async (request: Message) => request }),
  );
  return createGateway({
    methods,
    maxBodyBytes: 1,
    toError: () => new ConnectError('', Code.Internal),
  });
}

const get = (value: string, more: object = {}): Rule => ({
  pattern: { case: 'get', value },
  ...more,
});

test.each<[string, Shape]>([
  ['plain', { rules: [get('/a/{name}')] }],
  ['nested', { rules: [get('/a/{inner.name}', { body: 'inner', responseBody: 'list' })] }],
  ['literal and a variable', { rules: [get('/a/{name}'), get('/a/b')] }],
  [
    'custom verb',
    { rules: [{ pattern: { case: 'custom', value: { kind: 'FIND', path: '/a' } } }] },
  ],
])('%s starts', (_, shape) => {
  expect(start(shape)).toHaveProperty('handle');
});

test.each<[string, Shape, string]>([
  ['unknown variable', { rules: [get('/{nam}')] }, 't.S/M0 (GET /{nam}): t.Msg has no field "nam"'],
  ['through a scalar', { rules: [get('/{name.x}')] }, '"name" is no message'],
  ['list in a path', { rules: [get('/{list}')] }, '"list" cannot stand in a path'],
  ['message in a path', { rules: [get('/{inner}')] }, '"inner" cannot stand in a path'],
  ['unknown body', { rules: [get('/', { body: 'b' })] }, 't.Msg has no field "b"'],
  ['unknown response_body', { rules: [get('/', { responseBody: 'r' })] }, 'has no field "r"'],
  ['twice', { rules: [get('/a/{name}'), get('/a/{inner.name}')] }, 'is bound twice, also by'],
  ['twice by binding', { rules: [get('/a', { additionalBindings: [get('/a')] })] }, 'bound twice'],
  ['syntax', { rules: [get('/{')] }, 'a field name expected at position 2'],
  ['no path', { rules: [{}] }, 'a rule names no path'],
  ['no word', { rules: [get('/')], words: ['', undefined] }, 't.Kind: KIND_1 has no rest_name'],
  ['word twice', { rules: [get('/')], words: ['', 'a', 'A'] }, 'rest_name "A" is given twice'],
  ['stream', { rules: [get('/')], clientStreaming: true }, 'only a method with one request'],
  [
    'oneof',
    {
      rules: [get('/')],
      fields: [{ name: 'x', number: 9, type: Type.STRING, label: Label.OPTIONAL, oneofIndex: 0 }],
    },
    't.Msg.x: a oneof has no REST form',
  ],
])('%s stops the start', (_, shape, reason) => {
  expect(() => start(shape)).toThrow(reason);
});

test('an adapter whose method the table lacks stops the start', () => {
  const toError = () => new ConnectError('', Code.Internal);
  expect(() =>
    createGateway({ methods: [], adapters: [compatAdapters], maxBodyBytes: 1, toError }),
  ).toThrow('the table has no unary method queuedcrawler.v1.PushService/Push');
});

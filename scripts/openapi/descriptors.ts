import { execFileSync } from 'node:child_process';
import {
  type AnyDesc,
  createFileRegistry,
  type DescFile,
  type DescService,
  fromBinary,
} from '@bufbuild/protobuf';
import { FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt';

/** The API as its proto files describe it, comments included, which the generated code lacks. */
export interface DescribedApi {
  /** In the order of their files' names. */
  readonly services: readonly DescService[];
  /** The comment before a declaration, as Markdown; empty without one. */
  commentOf(desc: AnyDesc): string;
}

/** Builds the protos under `root` with buf, which must be on PATH. */
export function readApi(root: string): DescribedApi {
  const bytes = execFileSync(
    'buf',
    ['build', '--path', 'proto/queuedcrawler', '--as-file-descriptor-set', '-o', '-'],
    { cwd: root, maxBuffer: 64 * 1024 * 1024 },
  );
  const registry = createFileRegistry(fromBinary(FileDescriptorSetSchema, bytes));
  const ours = [...registry.files]
    .filter((file) => file.proto.package === 'queuedcrawler.v1')
    .sort((a, b) => (a.name < b.name ? -1 : 1));
  const comments = new Map(ours.map((file) => [file.name, commentsOf(file)]));
  return {
    services: ours.flatMap((file) => file.services),
    commentOf: (desc) => {
      const file = desc.kind === 'file' ? desc : fileOf(desc);
      return comments.get(file.name)?.get(pathOf(desc).join('.')) ?? '';
    },
  };
}

function commentsOf(file: DescFile): Map<string, string> {
  const locations = file.proto.sourceCodeInfo?.location ?? [];
  return new Map(
    locations.map(({ path, leadingComments }) => [path.join('.'), markdownFrom(leadingComments)]),
  );
}

/** Lines of one paragraph are joined; an empty line parts paragraphs. */
function markdownFrom(comment: string): string {
  return comment
    .split(/\n\s*\n/)
    .map((paragraph) => paragraph.trim().replace(/\s*\n\s*/g, ' '))
    .join('\n\n');
}

function fileOf(desc: Exclude<AnyDesc, DescFile>): DescFile {
  if ('file' in desc) return desc.file;
  return fileOf(desc.parent);
}

/**
 * The path of a declaration in SourceCodeInfo: field numbers of descriptor.proto and indexes in
 * turn.
 */
function pathOf(desc: AnyDesc): number[] {
  switch (desc.kind) {
    case 'message':
      return desc.parent === undefined
        ? [4, desc.file.proto.messageType.indexOf(desc.proto)]
        : [...pathOf(desc.parent), 3, desc.parent.proto.nestedType.indexOf(desc.proto)];
    case 'enum':
      return desc.parent === undefined
        ? [5, desc.file.proto.enumType.indexOf(desc.proto)]
        : [...pathOf(desc.parent), 4, desc.parent.proto.enumType.indexOf(desc.proto)];
    case 'service':
      return [6, desc.file.proto.service.indexOf(desc.proto)];
    case 'field':
      return [...pathOf(desc.parent), 2, desc.parent.proto.field.indexOf(desc.proto)];
    case 'enum_value':
      return [...pathOf(desc.parent), 2, desc.parent.proto.value.indexOf(desc.proto)];
    case 'rpc':
      return [...pathOf(desc.parent), 2, desc.parent.proto.method.indexOf(desc.proto)];
    default:
      return [];
  }
}

//! Reads the modules of a crate, and collects their functions.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::{fs, mem};

use crate::signature::{
    argument_types, has_conditional_probe, is_probe, modifiers_and_return, operation_name,
    type_text,
};
use proc_macro2::{TokenStream, TokenTree};
use syn::ext::IdentExt as _;
use syn::punctuated::Punctuated;
use syn::spanned::Spanned as _;
use syn::visit::{self, Visit};
use syn::{
    AttrStyle, Attribute, Block, Expr, FnModifiers, GenericParam, Ident, Lit, Meta, Signature,
    Stmt, Token, Visibility,
};

use super::names::{Definition, Name, Scopes, SelfType, alias};
use super::packages::Root;
use super::parsed::{Base, Owner, ParsedFunction, Probe};
use super::problem::Problem;
use super::reasons;
use super::source::{self, Source};

/// Texts of files.
pub(crate) type Texts = BTreeMap<PathBuf, String>;

/// What the blocks around a function say about it.
#[derive(Debug, Clone)]
struct Context {
    scope: usize,
    owner: Owner,
    reason: Option<&'static str>,
    has_probe: bool,
}

/// Reads a crate.
#[derive(Debug)]
pub(crate) struct CrateReader<'t> {
    /// The text of each file that is read.
    pub(crate) texts: &'t mut Texts,
    pub(crate) problems: &'t mut Vec<Problem>,
    /// The files that can be changed.
    pub(crate) files: &'t HashSet<PathBuf>,
    pub(crate) scopes: Scopes,
    pub(crate) functions: Vec<ParsedFunction>,
    /// The files that are still to be read. One is open at a time, because parsed files are large.
    pending: Vec<ModuleFile>,
}

/// The file of a module.
#[derive(Debug)]
struct ModuleFile {
    path: PathBuf,
    /// Where the files of its modules are.
    folder: PathBuf,
    context: Context,
    /// The files from the root of the crate to this one.
    parents: Vec<PathBuf>,
}

impl<'t> CrateReader<'t> {
    /// Reads all modules of a crate.
    pub(crate) fn read(
        root: &Root,
        texts: &'t mut Texts,
        problems: &'t mut Vec<Problem>,
        files: &'t HashSet<PathBuf>,
    ) -> Self {
        let mut reader = Self {
            texts,
            problems,
            files,
            scopes: Scopes::new(&root.name),
            functions: Vec::new(),
            pending: Vec::new(),
        };
        let context = Context {
            scope: Scopes::ROOT,
            owner: Owner::path(root.name.clone()),
            reason: root.reason,
            has_probe: false,
        };
        reader.pending.push(ModuleFile {
            path: root.file.clone(),
            folder: folder_of(&root.file),
            context,
            parents: Vec::new(),
        });
        while let Some(file) = reader.pending.pop() {
            reader.file(file);
        }
        reader
    }

    fn file(&mut self, file: ModuleFile) {
        let ModuleFile {
            path,
            folder,
            mut context,
            mut parents,
        } = file;
        let Ok(path) = fs::canonicalize(&path) else {
            let message = "the file of a crate is missing";
            return self.problem(&context, Problem::at(&path, 1, message));
        };
        if parents.contains(&path) {
            let message = "the file is a module of itself";
            return self.problem(&context, Problem::at(&path, 1, message));
        }
        if !self.files.contains(&path) {
            context.reason = context.reason.or(Some(reasons::ELSEWHERE));
        }
        let source = match Source::read(&path) {
            Ok(source) => source,
            Err(problem) => return self.problem(&context, problem),
        };
        let parsed = match source.parse() {
            Ok(parsed) => parsed,
            Err((line, message)) => {
                return self.problem(&context, Problem::at(&path, line, message));
            }
        };
        context.reason = context.reason.or_else(|| reasons::of_block(&parsed.attrs));
        parents.push(path.clone());
        let mut walker = Walker {
            path_folder: folder_of(&path),
            folder,
            file: &path,
            parents: &parents,
            source: &source,
            context,
            reader: self,
        };
        walker.visit_file(&parsed);
        self.texts.insert(path, source.text);
    }

    /// Reports a problem, unless the file could not be changed anyway.
    fn problem(&mut self, context: &Context, problem: Problem) {
        if context.reason.is_none() && !self.problems.contains(&problem) {
            self.problems.push(problem);
        }
    }
}

/// Walks through the items of a file.
struct Walker<'r, 't> {
    reader: &'r mut CrateReader<'t>,
    source: &'r Source,
    file: &'r Path,
    parents: &'r [PathBuf],
    /// Where `mod name;` looks for its file.
    folder: PathBuf,
    /// Where `#[path]` begins.
    path_folder: PathBuf,
    context: Context,
}

impl Walker<'_, '_> {
    /// Walks through a part with another context.
    fn inside(&mut self, context: Context, walk: impl FnOnce(&mut Self)) {
        let outer = mem::replace(&mut self.context, context);
        walk(self);
        self.context = outer;
    }

    fn define(&mut self, name: &Ident, definition: Definition) {
        let name = name.unraw().to_string();
        self.reader
            .scopes
            .define(self.context.scope, name, definition);
    }

    /// Walks through a constant. The paths of its functions are not certain.
    fn constant(&mut self, name: &Ident, walk: impl FnOnce(&mut Self)) {
        let mut context = self.context.clone();
        context.owner = context.owner.within(name.unraw().to_string());
        context.owner.is_certain = false;
        self.inside(context, walk);
    }

    /// Returns the context of a block with these attributes.
    fn block(&self, attributes: &[Attribute]) -> Context {
        let mut context = self.context.clone();
        context.reason = context.reason.or_else(|| reasons::of_block(attributes));
        context.has_probe |= attributes.iter().any(is_probe) || has_conditional_probe(attributes);
        context
    }

    fn function(
        &mut self,
        attributes: &[Attribute],
        visibility: &Visibility,
        modifiers: &FnModifiers,
        signature: &Signature,
        body: Option<&Block>,
    ) {
        let name = operation_name(signature);
        let own = reasons::of_function(attributes, modifiers, signature, body.is_some());
        let mut reason = self.context.reason.or(own);
        let probe = self.probe(attributes, &mut reason);
        // Others are inside the body.
        let mut outer = attributes
            .iter()
            .filter(|it| matches!(it.style, AttrStyle::Outer));
        let is_inserted = matches!(probe, Probe::Inserted(_));
        let first = outer.find(|it| match is_inserted {
            true => is_probe(it),
            false => !it.path().is_ident("doc"),
        });
        let first = match (first, visibility) {
            (Some(attribute), _) => attribute.span(),
            (None, Visibility::Inherited) => signature.span(),
            (None, visibility) => visibility.span(),
        };
        let ident = self.source.range(signature.ident.span());
        self.reader.functions.push(ParsedFunction {
            file: self.file.to_owned(),
            line: self.source.line(ident.start),
            start: self.source.range(first).start,
            parts: Some((
                modifiers_and_return(visibility, signature),
                argument_types(signature),
            )),
            owner: self.context.owner.clone(),
            probe,
            reason,
            name: name.clone(),
        });
        if let Some(body) = body {
            let mut context = self.context.clone();
            context.owner = context.owner.within(name);
            context.has_probe = false;
            context.reason = context
                .reason
                .or_else(|| own.filter(|it| *it == reasons::TEST));
            self.inside(context, |walker| walker.visit_block(body));
        }
    }

    /// Returns the probe of a function.
    fn probe(&self, attributes: &[Attribute], reason: &mut Option<&'static str>) -> Probe {
        let Some(attribute) = attributes.iter().find(|it| is_probe(it)) else {
            return match self.context.has_probe || has_conditional_probe(attributes) {
                true if reason.is_none() => Probe::ByHand(None),
                _ => Probe::None,
            };
        };
        let options = match &attribute.meta {
            Meta::List(list) => list
                .parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated)
                .unwrap_or_default(),
            _ => Punctuated::new(),
        };
        if options.iter().any(|option| option.path().is_ident("skip")) {
            *reason = reason.or(Some(reasons::SKIP));
            return Probe::None;
        }
        let name = options.iter().find_map(|option| text_of(option, "name"));
        // The brackets end the attribute; its span includes `#`.
        let range = self.source.range(attribute.span());
        match self.source.is_inserted(&range) {
            true => Probe::Inserted(name),
            false => Probe::ByHand(name),
        }
    }

    /// Reads the file of `mod name;`.
    fn module_file(&mut self, module: &syn::ItemMod, context: &Context) {
        let name = module.ident.unraw().to_string();
        let metas = module.attrs.iter().flat_map(reasons::metas);
        let paths: Vec<_> = metas.filter_map(|meta| text_of(&meta, "path")).collect();
        let is_certain = module.attrs.iter().any(|it| it.path().is_ident("path"));
        let is_conditional = module
            .attrs
            .iter()
            .any(|it| it.path().is_ident("cfg") || it.path().is_ident("cfg_attr"));
        let mut files: Vec<_> = paths
            .iter()
            .map(|path| self.path_folder.join(path))
            .map(|file| (folder_of(&file), file))
            .collect();
        if !is_certain {
            let folder = self.folder.join(&name);
            files.push((folder.clone(), self.folder.join(format!("{name}.rs"))));
            files.push((folder.clone(), folder.join("mod.rs")));
        }
        files.retain(|(_, file)| file.is_file());
        if files.is_empty() && !is_conditional {
            let line = self
                .source
                .line(self.source.range(module.ident.span()).start);
            let message = format!("there is no file of the module `{name}`");
            let problem = Problem::at(self.file, line, message);
            self.reader.problem(context, problem);
        }
        for (folder, path) in files {
            let context = self.module_scope(&module.ident, context.clone());
            self.reader.pending.push(ModuleFile {
                path,
                folder,
                context,
                parents: self.parents.to_vec(),
            });
        }
    }

    /// Adds the scope of a module, and returns the context in it.
    fn module_scope(&mut self, name: &Ident, mut context: Context) -> Context {
        let (outer, is_certain) = self.context.owner.class(&self.reader.scopes);
        let path = format!("{outer}.{}", name.unraw());
        let scope = self.context.scope;
        let scopes = &mut self.reader.scopes;
        let scope = scopes.add(Some(scope), path.clone(), is_certain, true);
        self.define(name, Definition::Module(scope));
        context.scope = scope;
        context.owner = Owner::path(path);
        context.owner.is_certain = is_certain;
        context
    }

    /// Reports the functions in the tokens of a macro.
    fn macro_tokens(&mut self, tokens: &TokenStream) {
        let mut after_fn = false;
        source::visit(tokens, |tree, _| match tree {
            TokenTree::Ident(name) if after_fn => {
                let start = self.source.range(name.span()).start;
                self.reader.functions.push(ParsedFunction {
                    file: self.file.to_owned(),
                    line: self.source.line(start),
                    start,
                    name: name.unraw().to_string(),
                    parts: None,
                    owner: self.context.owner.clone(),
                    probe: Probe::None,
                    reason: self.context.reason.or(Some(reasons::IN_MACRO)),
                });
                after_fn = false;
            }
            TokenTree::Ident(word) => after_fn = word == "fn",
            _ => after_fn = false,
        });
    }
}

impl<'ast> Visit<'ast> for Walker<'_, '_> {
    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        let context = self.block(&module.attrs);
        let Some((_, items)) = &module.content else {
            self.module_file(module, &context);
            return;
        };
        let context = self.module_scope(&module.ident, context);
        let path = module.attrs.iter().find_map(|it| text_of(&it.meta, "path"));
        let folder = match path {
            Some(path) => self.path_folder.join(path),
            None => self.folder.join(module.ident.unraw().to_string()),
        };
        let folders = (
            mem::replace(&mut self.folder, folder.clone()),
            mem::replace(&mut self.path_folder, folder),
        );
        self.inside(context, |walker| {
            items.iter().for_each(|item| walker.visit_item(item));
        });
        (self.folder, self.path_folder) = folders;
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        let body = Some(&*item.block);
        self.function(&item.attrs, &item.vis, &item.modifiers, &item.sig, body);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        let body = Some(&item.block);
        self.function(&item.attrs, &item.vis, &item.modifiers, &item.sig, body);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        let visibility = Visibility::Inherited;
        let body = item.default.as_ref();
        self.function(&item.attrs, &visibility, &item.modifiers, &item.sig, body);
    }

    fn visit_foreign_item_fn(&mut self, item: &'ast syn::ForeignItemFn) {
        let modifiers = FnModifiers::default();
        self.function(&item.attrs, &item.vis, &modifiers, &item.sig, None);
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        let mut context = self.block(&item.attrs);
        let generics = item.generics.params.iter();
        let generics = generics.filter_map(|it| match it {
            GenericParam::Type(it) => Some(it.ident.unraw().to_string()),
            _ => None,
        });
        let of_trait = item.trait_.as_ref().map(|(path, _)| path);
        context.reason = context
            .reason
            .or_else(|| of_trait.and_then(reasons::of_trait));
        context.owner = Owner {
            base: Base::Type {
                scope: context.scope,
                written: type_text(&item.self_ty),
                of_type: SelfType::of(&item.self_ty, &generics.collect::<Vec<_>>()),
                of_trait: of_trait.map(Name::of),
            },
            within: Vec::new(),
            is_certain: true,
        };
        self.inside(context, |walker| visit::visit_item_impl(walker, item));
    }

    fn visit_item_trait(&mut self, item: &'ast syn::ItemTrait) {
        self.define(&item.ident, Definition::Type);
        let mut context = self.block(&item.attrs);
        context.owner = context.owner.within(item.ident.unraw().to_string());
        self.inside(context, |walker| visit::visit_item_trait(walker, item));
    }

    /// A block with items is a scope of its own.
    fn visit_block(&mut self, block: &'ast Block) {
        if !block.stmts.iter().any(|it| matches!(it, Stmt::Item(_))) {
            visit::visit_block(self, block);
            return;
        }
        let mut context = self.context.clone();
        let (path, is_certain) = context.owner.class(&self.reader.scopes);
        let scopes = &mut self.reader.scopes;
        context.scope = scopes.add(Some(context.scope), path, is_certain, false);
        self.inside(context, |walker| visit::visit_block(walker, block));
    }

    fn visit_item_const(&mut self, item: &'ast syn::ItemConst) {
        self.constant(&item.ident, |walker| visit::visit_item_const(walker, item));
    }

    fn visit_item_static(&mut self, item: &'ast syn::ItemStatic) {
        self.constant(&item.ident, |walker| visit::visit_item_static(walker, item));
    }

    fn visit_impl_item_const(&mut self, item: &'ast syn::ImplItemConst) {
        self.constant(&item.ident, |walker| {
            visit::visit_impl_item_const(walker, item)
        });
    }

    fn visit_trait_item_const(&mut self, item: &'ast syn::TraitItemConst) {
        self.constant(&item.ident, |walker| {
            visit::visit_trait_item_const(walker, item)
        });
    }

    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        self.define(&item.ident, Definition::Type);
        visit::visit_item_struct(self, item);
    }

    fn visit_item_enum(&mut self, item: &'ast syn::ItemEnum) {
        self.define(&item.ident, Definition::Type);
        visit::visit_item_enum(self, item);
    }

    fn visit_item_union(&mut self, item: &'ast syn::ItemUnion) {
        self.define(&item.ident, Definition::Type);
        visit::visit_item_union(self, item);
    }

    fn visit_item_type(&mut self, item: &'ast syn::ItemType) {
        self.define(&item.ident, alias(item));
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        self.reader.scopes.import(self.context.scope, item);
    }

    fn visit_macro(&mut self, item: &'ast syn::Macro) {
        self.macro_tokens(&item.tokens);
    }
}

/// Returns the text of `name = "text"`.
fn text_of(option: &Meta, name: &str) -> Option<String> {
    match option {
        Meta::NameValue(pair) if pair.path.is_ident(name) => match &pair.value {
            Expr::Lit(literal) => match &literal.lit {
                Lit::Str(text) => Some(text.value()),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    }
}

fn folder_of(file: &Path) -> PathBuf {
    file.parent().unwrap_or(file).to_owned()
}
